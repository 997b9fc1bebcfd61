//! Running kernels on every instruction set of the machine, in tests.

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::{DType, Interrupt, Operator, Result, Tensor};

use kilim_host::registry::Candidate;
use kilim_host::{Build, Kernel, run_candidate};

/// In wasm, tests are what its test runner finds.
#[cfg(target_arch = "wasm32")]
pub(crate) use wasm_bindgen_test::wasm_bindgen_test as test;

/// A kernel made by a closure.
pub(crate) struct Made<F>(pub F);

impl<F> Candidate for Made<F>
where
    F: Fn(&NodeSpec, &mut Build) -> Result<Box<dyn Kernel>> + Send + Sync,
{
    fn accepts(&self, _: &NodeSpec) -> Result<(), Refusal> {
        Ok(())
    }

    fn build(&self, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
        (self.0)(node, build)
    }
}

/// Runs the kernel that `make` builds; the one output is `float32`.
pub(crate) fn run_kernel(
    op: &dyn Operator,
    inputs: &[Option<&Tensor>],
    shape: &[usize],
    make: impl Fn(&NodeSpec, &mut Build) -> Result<Box<dyn Kernel>> + Send + Sync,
) -> Vec<f32> {
    run_kernels(op, inputs, &[shape], make).swap_remove(0)
}

/// Runs the kernel that `make` builds; all outputs, of these shapes, are `float32`.
pub(crate) fn run_kernels(
    op: &dyn Operator,
    inputs: &[Option<&Tensor>],
    shapes: &[&[usize]],
    make: impl Fn(&NodeSpec, &mut Build) -> Result<Box<dyn Kernel>> + Send + Sync,
) -> Vec<Vec<f32>> {
    let inputs: Vec<_> = inputs.iter().map(|i| i.map(TensorSpec::of)).collect();
    let outputs = shapes
        .iter()
        .map(|shape| TensorSpec::new(DType::F32, shape));
    let outputs: Vec<_> = outputs.collect();
    let node = NodeSpec {
        name: "test",
        op,
        inputs: &inputs,
        outputs: &outputs,
    };
    let out = run_candidate(&Made(make), &node, &Interrupt::NEVER).expect("the kernel runs");
    let floats = |y: &Tensor| y.as_slice::<f32>().expect("float32").to_vec();
    out.iter().map(floats).collect()
}

/// The first output of the kernel that `make` builds for `node`.
pub(crate) fn run_node(
    node: &NodeSpec,
    make: impl Fn(&NodeSpec, &mut Build) -> Result<Box<dyn Kernel>> + Send + Sync,
) -> Tensor {
    let made = Made(make);
    let mut out = run_candidate(&made, node, &Interrupt::NEVER).expect("the kernel runs");
    out.swap_remove(0)
}

/// Every element within `tolerance` of the reference, relative to the larger of it and one.
pub(crate) fn assert_within(got: &[f32], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let g = f64::from(*g);
        let same = (g.is_nan() && w.is_nan()) || g == *w;
        assert!(
            same || (g - w).abs() <= tolerance * w.abs().max(1.0),
            "{what}: element {i} is {g} instead of {w}"
        );
    }
}
