//! One node on a backend of the ARM Compute Library, and on `cpu` beside it.

// Each program of tests needs a part of it.
#![allow(dead_code, unused_imports)]

pub mod exact;
pub mod half;
mod nodes;
pub mod real;
pub mod steps;
mod tensors;

use std::sync::Arc;

use kilim_core::backend::{
    Backend, ConstantKey, ContextConfig, KernelSpec, Location, NodeSpec, StageSpec, TensorSlot,
    TensorSpec,
};
use kilim_core::ids::{KernelIndex, PartIndex, PerTensor};
use kilim_core::{DType, Interrupt, Operator, Tensor};
use kilim_native_arm::AclBackend;

pub use nodes::*;
pub use tensors::*;

pub enum Given {
    Fed(Tensor),
    Constant(Tensor),
}
pub use Given::{Constant, Fed};

pub fn poll<T>(mut future: kilim_core::backend::LocalFuture<T>) -> T {
    let waker = std::task::Waker::noop();
    match future
        .as_mut()
        .poll(&mut std::task::Context::from_waker(waker))
    {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("reading host memory waits for nothing"),
    }
}

/// Whether ACL has functions for a node in the types that it has.
///
/// # Errors
/// The reason why not.
pub fn ask(
    acl: &AclBackend,
    op: &dyn Operator,
    inputs: &[Given],
    output: (DType, &[usize]),
) -> Result<(), String> {
    let spec = |given: &Given| {
        Some(match given {
            Fed(t) => TensorSpec::new(t.dtype(), t.shape()),
            Constant(t) => TensorSpec::of(t),
        })
    };
    let inputs: Vec<_> = inputs.iter().map(spec).collect();
    let answer = acl.supports_as_it_is(&NodeSpec {
        name: "node",
        op,
        inputs: &inputs,
        outputs: &[TensorSpec::new(output.0, output.1)],
    });
    answer.map_err(|refusal| refusal.reason)
}

/// Runs one node on a backend, twice: then with what is fed turned around.
pub fn run(
    backend: &dyn Backend,
    op: impl Operator,
    inputs: &[Given],
    output: (DType, &[usize]),
) -> Result<Vec<Tensor>, String> {
    let mut tensors = PerTensor::new();
    let mut read = Vec::new();
    let mut feeds = Vec::new();
    for (i, given) in inputs.iter().enumerate() {
        let (spec, location) = match given {
            Fed(t) => {
                feeds.push((tensors.end(), t.clone()));
                (TensorSpec::new(t.dtype(), t.shape()), Location::Input)
            }
            Constant(t) => (TensorSpec::of(t), Location::Constant(ConstantKey(i as u64))),
        };
        read.push(Some(tensors.push(TensorSlot {
            name: format!("input{i}"),
            spec,
            location,
        })));
    }
    let y = tensors.push(TensorSlot {
        name: "y".into(),
        spec: TensorSpec::new(output.0, output.1),
        location: Location::Output,
    });
    let op: Arc<dyn Operator> = Arc::new(op);
    let node = KernelSpec {
        name: "node".into(),
        op: op.clone(),
        inputs: read,
        outputs: vec![y],
    };
    let stage = StageSpec {
        tensors,
        nodes: [node].into(),
        parts: [KernelIndex(0)..KernelIndex(1)].into(),
        ..StageSpec::default()
    };
    let (specs, outputs) = stage.specs(&stage.nodes[KernelIndex(0)]);
    backend
        .supports(&NodeSpec {
            name: "node",
            op: &*op,
            inputs: &specs,
            outputs: &outputs,
        })
        .map_err(|r| r.reason)?;
    let error = |e: kilim_core::Error| e.to_string();
    let mut context = backend
        .create_context(&ContextConfig::default())
        .map_err(error)?;
    let mut stage = context.prepare(stage, &Interrupt::NEVER).map_err(error)?;
    let mut results = Vec::new();
    // The second time with other data: nothing of the first may be left.
    for again in [false, true] {
        stage.execute_begin().map_err(error)?;
        for (i, t) in &feeds {
            let fed = if again { turned(t) } else { t.clone() };
            stage.write(*i, &fed).map_err(error)?;
        }
        stage.run(PartIndex(0), &Interrupt::NEVER).map_err(error)?;
        stage.execute_end().map_err(error)?;
        results.push(poll(stage.read(&[y])).map_err(error)?.remove(0));
    }
    Ok(results)
}

/// The largest difference between ACL and the `cpu` backend's kernels, which have references of
/// their own.
pub fn difference(
    acl: &AclBackend,
    op: impl Operator + Clone,
    inputs: &[Given],
    output: (DType, &[usize]),
) -> f64 {
    let cpu = kilim_simd_cpu::backend();
    let got = run(acl, op.clone(), inputs, output).unwrap();
    let want = run(&cpu, op, inputs, output).unwrap();
    let mut largest = 0.0f64;
    for (got, want) in got.iter().zip(&want) {
        for (g, w) in got.to_f64s().unwrap().iter().zip(want.to_f64s().unwrap()) {
            let d = (g - w).abs();
            assert!(d.is_finite(), "{g} instead of {w}");
            largest = largest.max(d);
        }
    }
    assert!(want[0].to_f64s().unwrap().iter().any(|&v| v != 0.0));
    largest
}
