//! Running single nodes in tests.

use kilim_core::backend::{Backend, NodeSpec, TensorSpec};
use kilim_core::tensor::Element;
use kilim_core::{DType, Operator, Result, Tensor};

use crate::CpuBackend;

/// Runs `op` once; the outputs' element types and shapes are given.
pub fn run(
    op: &dyn Operator,
    inputs: &[Option<&Tensor>],
    outputs: &[(DType, &[usize])],
) -> Result<Vec<Tensor>> {
    let inputs: Vec<_> = inputs.iter().map(|i| i.map(TensorSpec::of)).collect();
    let outputs: Vec<_> = outputs
        .iter()
        .map(|(d, s)| TensorSpec::new(*d, s))
        .collect();
    let node = NodeSpec {
        name: "test",
        op,
        inputs: &inputs,
        outputs: &outputs,
    };
    CpuBackend::reference()
        .evaluate(&node, &kilim_core::Interrupt::NEVER)
        .expect("the backend evaluates")
}

/// Like [`run`] for one output of `float32`.
pub fn run_f32(op: &dyn Operator, inputs: &[&Tensor], shape: &[usize]) -> Vec<f32> {
    run_as(op, inputs, shape)
}

/// Like [`run`] for one output.
pub fn run_as<T: Element>(op: &dyn Operator, inputs: &[&Tensor], shape: &[usize]) -> Vec<T> {
    let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
    let out = run(op, &inputs, &[(T::DTYPE, shape)]).expect("the node runs");
    out[0].as_slice::<T>().expect("the type asked for").to_vec()
}

pub fn tensor<T: Element>(shape: &[usize], data: &[T]) -> Tensor {
    Tensor::from_slice(shape, data).expect("data fits shape")
}

/// Numbers in -1..1 that look random and are the same every time.
pub fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2654435761).wrapping_add(12345);
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as f32 / u32::MAX as f32 * 2.0 - 1.0
        })
        .collect()
}

/// `|got - want| <= 1e-5 + 1e-5 |want|` everywhere.
pub fn assert_close(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let g = f64::from(*g);
        let close = (g - w).abs() <= 1e-5 + 1e-5 * w.abs() || g == *w || (g.is_nan() && w.is_nan());
        assert!(close, "element {i}: {g} instead of {w}");
    }
}
