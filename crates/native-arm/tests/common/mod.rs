//! One node on a backend of the ARM Compute Library, and on `cpu` beside it.

use std::sync::Arc;

use kilim_core::backend::{
    Backend, ConstantKey, ContextConfig, KernelSpec, NodeSpec, Place, StageSpec, TensorSlot,
    TensorSpec,
};
use kilim_core::ops::{Conv, Padding};
use kilim_core::{DType, Operator, Tensor};
use kilim_native_arm::AclBackend;

pub fn floats(shape: &[usize], f: impl Fn(usize) -> f32) -> Tensor {
    let data: Vec<f32> = (0..shape.iter().product()).map(f).collect();
    Tensor::from_slice(shape, &data).unwrap()
}

/// Numbers between -1 and 1 without a pattern.
pub fn noise(shape: &[usize], seed: usize) -> Tensor {
    floats(shape, |i| {
        let x = (i * 7919 + seed * 104_729 + 13) * 2_654_435_761 % 65_536;
        x as f32 / 32_768.0 - 1.0
    })
}

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

/// Runs one node on a backend, once with each of `feeds` in the place of the first fed input.
pub fn run(
    backend: &dyn Backend,
    op: impl Operator,
    inputs: &[Given],
    output: (DType, &[usize]),
) -> Result<Vec<Tensor>, String> {
    let mut tensors = Vec::new();
    let mut feeds = Vec::new();
    for (i, given) in inputs.iter().enumerate() {
        let (spec, place) = match given {
            Fed(t) => {
                feeds.push((i, t.clone()));
                (TensorSpec::new(t.dtype(), t.shape()), Place::Input)
            }
            Constant(t) => (TensorSpec::of(t), Place::Constant(ConstantKey(i as u64))),
        };
        tensors.push(TensorSlot {
            name: format!("input{i}"),
            spec,
            place,
        });
    }
    tensors.push(TensorSlot {
        name: "y".into(),
        spec: TensorSpec::new(output.0, output.1),
        place: Place::Output,
    });
    let y = tensors.len() - 1;
    let op: Arc<dyn Operator> = Arc::new(op);
    let node = KernelSpec {
        name: "node".into(),
        op: op.clone(),
        inputs: (0..inputs.len()).map(Some).collect(),
        outputs: vec![y],
    };
    let stage = StageSpec {
        tensors,
        nodes: vec![node],
        parts: std::iter::once(0..1).collect(),
        ..StageSpec::default()
    };
    let (specs, outputs) = stage.specs(&stage.nodes[0]);
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
    let mut stage = context.prepare(stage).map_err(error)?;
    let mut results = Vec::new();
    // The second time with other data: nothing of the first may be left.
    for sign in [1.0, -1.0] {
        stage.execute_begin().map_err(error)?;
        for (i, t) in &feeds {
            let fed = match t.dtype() {
                DType::F32 => {
                    let data = t.as_slice::<f32>().unwrap();
                    floats(t.shape(), |i| sign * data[i])
                }
                _ => t.clone(),
            };
            stage.write(*i, &fed).map_err(error)?;
        }
        stage.run(0).map_err(error)?;
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

pub fn bytes(shape: &[usize], step: usize) -> Tensor {
    let data: Vec<i8> = (0..shape.iter().product())
        .map(|i: usize| (i * step % 251) as u8 as i8)
        .collect();
    Tensor::from_slice(shape, &data).unwrap()
}

pub fn scalar(v: f32) -> Given {
    Constant(Tensor::scalar(v).unwrap())
}

pub fn conv(groups: usize, channels_last: bool) -> Conv {
    Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        padding: Padding::Explicit(vec![1, 1, 1, 1]),
        groups,
        channels_last,
        activation: Default::default(),
    }
}
