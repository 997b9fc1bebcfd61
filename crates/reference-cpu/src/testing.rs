//! Running single nodes in tests.

use kilim_core::backend::{Backend, NodeSpec, TensorSpec};
use kilim_core::tensor::Element;
use kilim_core::{DType, Operator, Result, Tensor};

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
    crate::backend()
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
