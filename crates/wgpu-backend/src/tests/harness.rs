//! Runs one node on the GPU.

use std::sync::Arc;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::OnceLock;

use kilim_core::backend::{
    Backend, ConstantKey, ContextConfig, KernelSpec, Location, NodeSpec, StageSpec, TensorSlot,
    TensorSpec,
};
use kilim_core::ids::{KernelIndex, PartIndex, TensorIndex};
use kilim_core::ops::{Fact, InferContext, InputFact};
#[cfg(not(target_arch = "wasm32"))]
use kilim_core::tuning::Choice;
use kilim_core::tuning::Tuned;
use kilim_core::{DType, Interrupt, Operator, Result, Tensor};

use crate::WgpuBackend;
use crate::device::gpu::Gpu;
use crate::device::selection::{self, Selection};

/// The GPU, opened once for all tests; without one `None`, and the calling test says that it is skipped.
#[cfg(not(target_arch = "wasm32"))]
#[track_caller]
pub fn gpu() -> Option<&'static WgpuBackend> {
    static HARD: OnceLock<Result<WgpuBackend>> = OnceLock::new();
    static SOFT: OnceLock<Result<WgpuBackend>> = OnceLock::new();
    let (gpu, software) = if SOFTWARE.get() {
        (&SOFT, true)
    } else {
        (&HARD, false)
    };
    match gpu.get_or_init(|| pollster::block_on(open(software))) {
        Ok(gpu) => Some(gpu),
        Err(e) => {
            kilim_test_support::skip(e);
            None
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
thread_local! {
    static SOFTWARE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs a test with the kernels for real devices, then with those for devices that are a CPU.
#[cfg(not(target_arch = "wasm32"))]
pub fn on_both(test: fn()) {
    if gpu().is_some() {
        test();
        SOFTWARE.set(true);
        test();
        SOFTWARE.set(false);
    }
}

#[cfg(target_arch = "wasm32")]
thread_local! {
    static GPU: std::cell::Cell<Option<&'static WgpuBackend>> = const { std::cell::Cell::new(None) };
}

/// What [`open_here`] opened.
#[cfg(target_arch = "wasm32")]
pub fn gpu() -> Option<&'static WgpuBackend> {
    GPU.get()
}

/// Opens the GPU for this thread; false where there is none.
#[cfg(target_arch = "wasm32")]
pub async fn open_here() -> bool {
    if GPU.get().is_none() {
        let gpu = open(true).await.ok();
        GPU.set(gpu.map(|gpu| &*Box::leak(Box::new(gpu))));
    }
    GPU.get().is_some()
}

async fn open(software: bool) -> Result<WgpuBackend> {
    let gpu = Gpu::open(&Selection::default()).await?;
    eprintln!("GPU: {}", selection::describe(&gpu.info));
    Ok(WgpuBackend::on(gpu, software))
}

/// An input of a node under test.
#[derive(Clone)]
pub enum Given {
    /// Known only when the node runs.
    Fed(Tensor),
    Constant(Tensor),
    Absent,
}

pub fn f32s(shape: &[usize], data: &[f32]) -> Tensor {
    Tensor::from_slice(shape, data).unwrap()
}

/// Numbers between -1 and 1, the same for the same seed.
pub fn random(shape: &[usize], seed: u32) -> Tensor {
    let mut state = seed.wrapping_mul(2654435761).wrapping_add(12345);
    let data: Vec<f32> = (0..shape.iter().product::<usize>())
        .map(|_| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    f32s(shape, &data)
}

/// One node as a stage: fed inputs and outputs in the arena.
pub fn stage(
    op: Arc<dyn Operator>,
    inputs: &[Given],
    outputs: &[(DType, Vec<usize>)],
) -> StageSpec {
    let gpu = gpu().unwrap();
    let allocator = gpu.allocator();
    let mut spec = StageSpec::default();
    let mut end = 0usize;
    let mut reserve = |tensor: &TensorSpec| {
        let offset = end;
        end = (end + allocator.tensor_bytes(tensor)).next_multiple_of(gpu.describe().alignment);
        Location::Arena { offset }
    };
    let mut node = KernelSpec {
        name: "node".into(),
        op,
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    for (i, given) in inputs.iter().enumerate() {
        let (tensor, location) = match given {
            Given::Absent => {
                node.inputs.push(None);
                continue;
            }
            Given::Fed(t) => {
                let s = TensorSpec::new(t.dtype(), t.shape());
                let p = reserve(&s);
                (s, p)
            }
            Given::Constant(t) => (TensorSpec::of(t), Location::Constant(ConstantKey(i as u64))),
        };
        node.inputs.push(Some(spec.tensors.push(TensorSlot {
            name: format!("in{i}"),
            spec: tensor,
            location,
        })));
    }
    for (i, (dtype, shape)) in outputs.iter().enumerate() {
        let tensor = TensorSpec::new(*dtype, shape);
        let location = reserve(&tensor);
        node.outputs.push(spec.tensors.push(TensorSlot {
            name: format!("out{i}"),
            spec: tensor,
            location,
        }));
    }
    let only = spec.nodes.push(node);
    spec.parts.push(only..spec.nodes.end());
    spec.arena_bytes = end;
    spec
}

/// Whether the backend takes the node.
pub fn supports(stage: &StageSpec) -> Result<(), String> {
    let node = &stage.nodes[KernelIndex(0)];
    let (inputs, outputs) = stage.specs(node);
    gpu()
        .unwrap()
        .supports(&NodeSpec {
            name: &node.name,
            op: node.op.as_ref(),
            inputs: &inputs,
            outputs: &outputs,
        })
        .map(|_| ())
        .map_err(|r| r.reason)
}

/// Bytes that are the same for the same seed.
#[cfg(not(target_arch = "wasm32"))]
pub fn packed_bytes(shape: &[usize], seed: u32) -> Tensor {
    let numbers = values(&random(shape, seed));
    let bytes: Vec<u8> = numbers.iter().map(|v| (v * 127.0) as i8 as u8).collect();
    Tensor::from_slice(shape, &bytes).unwrap()
}

/// The outputs of a node, and its launches.
pub async fn run_later(
    op: impl Operator,
    inputs: &[Given],
    outputs: &[(DType, Vec<usize>)],
) -> (Vec<Tensor>, usize) {
    let spec = stage(Arc::new(op), inputs, outputs);
    supports(&spec).unwrap_or_else(|r| panic!("refused: {r}"));
    run_tuned(&spec, inputs, Tuned::default()).await
}

/// Runs every kernel between which there is a choice for the node, and asserts that they give `want`.
/// Returns how many there are.
#[cfg(not(target_arch = "wasm32"))]
#[track_caller]
pub fn every_kernel(
    op: impl Operator,
    inputs: &[Given],
    shape: &[usize],
    want: &[f64],
    tolerance: f64,
) -> usize {
    let spec = stage(Arc::new(op), inputs, &[(DType::F32, shape.to_vec())]);
    supports(&spec).unwrap_or_else(|r| panic!("refused: {r}"));
    let all: Vec<Tuned> = match choice(&spec) {
        Some(Choice { class, algorithms }) => {
            let only = algorithms.iter().map(|a| Tuned::only(&class, a));
            only.collect()
        }
        None => vec![Tuned::default()],
    };
    for tuned in &all {
        let run = run_tuned(&spec, inputs, tuned.clone());
        let (outputs, _) = pollster::block_on(run);
        close(&outputs[0], want, tolerance);
    }
    all.len()
}

/// The kernels that the backend has for the node.
#[cfg(not(target_arch = "wasm32"))]
fn choice(stage: &StageSpec) -> Option<Choice> {
    let node = &stage.nodes[KernelIndex(0)];
    let (inputs, outputs) = stage.specs(node);
    let spec = NodeSpec {
        name: &node.name,
        op: node.op.as_ref(),
        inputs: &inputs,
        outputs: &outputs,
    };
    gpu().unwrap().choice(&spec, &ContextConfig::default())
}

async fn run_tuned(spec: &StageSpec, inputs: &[Given], tuned: Tuned) -> (Vec<Tensor>, usize) {
    let feeds: Vec<(TensorIndex, Tensor)> = spec.nodes[KernelIndex(0)]
        .inputs
        .iter()
        .zip(inputs)
        .filter_map(|(slot, given)| match given {
            Given::Fed(t) => Some((slot.unwrap(), t.clone())),
            _ => None,
        })
        .collect();
    let wanted = spec.nodes[KernelIndex(0)].outputs.clone();
    let config = ContextConfig {
        tuned,
        ..ContextConfig::default()
    };
    let mut context = gpu().unwrap().create_context(&config).unwrap();
    let mut executable = context.prepare(spec.clone(), &Interrupt::NEVER).unwrap();
    context.warm_up(&Interrupt::NEVER).await.unwrap();
    executable.execute_begin().unwrap();
    for (slot, tensor) in &feeds {
        executable.write(*slot, tensor).unwrap();
    }
    executable.run(PartIndex(0), &Interrupt::NEVER).unwrap();
    let out = executable.read(&wanted).await.unwrap();
    executable.execute_end().unwrap();
    (out, executable.launches())
}

#[cfg(not(target_arch = "wasm32"))]
pub fn run(op: impl Operator, inputs: &[Given], outputs: &[(DType, Vec<usize>)]) -> Vec<Tensor> {
    pollster::block_on(run_later(op, inputs, outputs)).0
}

/// See [`agree_later`].
#[cfg(not(target_arch = "wasm32"))]
#[track_caller]
pub fn agree(op: impl Operator, inputs: &[Given], outputs: usize, tolerance: f64) -> usize {
    pollster::block_on(agree_later(op, inputs, outputs, tolerance))
}

/// Asserts that the GPU gives what the CPU backend gives; returns the launches.
pub async fn agree_later(
    op: impl Operator,
    inputs: &[Given],
    outputs: usize,
    tolerance: f64,
) -> usize {
    let want = expected(&op, inputs, outputs);
    let shapes: Vec<_> = want
        .iter()
        .map(|w| (w.dtype(), w.shape().to_vec()))
        .collect();
    let (got, launches) = run_later(op, inputs, &shapes).await;
    for (g, w) in got.iter().zip(&want) {
        assert_eq!((g.dtype(), g.shape()), (w.dtype(), w.shape()));
        if tolerance == 0.0 && !w.dtype().is_float() {
            assert_eq!(
                g.read().unwrap(),
                w.read().unwrap(),
                "{g:?} instead of {w:?}"
            );
        } else {
            close(g, &w.to_f64s().unwrap(), tolerance);
        }
    }
    launches
}

/// What the CPU backend makes of the node.
pub fn expected(op: &dyn Operator, inputs: &[Given], outputs: usize) -> Vec<Tensor> {
    let facts: Vec<Option<InputFact>> = inputs
        .iter()
        .map(|given| match given {
            Given::Absent => None,
            Given::Fed(t) => Some(InputFact {
                fact: Fact::of(t),
                value: None,
            }),
            Given::Constant(t) => Some(InputFact {
                fact: Fact::of(t),
                value: Some(t.clone()),
            }),
        })
        .collect();
    let context = InferContext::new(&facts, outputs);
    let outputs: Vec<TensorSpec> = op
        .infer(&context)
        .unwrap()
        .iter()
        .take(outputs)
        .map(|f| TensorSpec::new(f.dtype.unwrap(), &f.concrete().unwrap()))
        .collect();
    let inputs: Vec<Option<TensorSpec>> = inputs
        .iter()
        .map(|given| match given {
            Given::Absent => None,
            Given::Fed(t) | Given::Constant(t) => Some(TensorSpec::of(t)),
        })
        .collect();
    let node = NodeSpec {
        name: "node",
        op,
        inputs: &inputs,
        outputs: &outputs,
    };
    let results = kilim_simd_cpu::backend().evaluate(&node, &Interrupt::NEVER);
    results.unwrap().unwrap()
}

/// A tensor with its elements rounded to `float16`.
#[cfg(not(target_arch = "wasm32"))]
pub fn halved(tensor: &Tensor) -> Tensor {
    let halves: Vec<half::f16> = tensor
        .to_f64s()
        .unwrap()
        .into_iter()
        .map(half::f16::from_f64)
        .collect();
    Tensor::from_slice(tensor.shape(), &halves).unwrap()
}

pub fn i64s(data: &[i64]) -> Given {
    Given::Constant(Tensor::from_slice(&[data.len()], data).unwrap())
}

/// One `float32` output, every input fed.
#[cfg(not(target_arch = "wasm32"))]
pub fn fed(op: impl Operator, inputs: &[Tensor], shape: &[usize]) -> Tensor {
    let inputs: Vec<_> = inputs.iter().cloned().map(Given::Fed).collect();
    run(op, &inputs, &[(DType::F32, shape.to_vec())]).remove(0)
}

/// Asserts `|got - want| <= tolerance * max(1, |want|)`; NaN equals NaN.
#[track_caller]
pub fn close(got: &Tensor, want: &[f64], tolerance: f64) {
    let got = got.to_f64s().unwrap();
    assert_eq!(got.len(), want.len());
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan());
        let near = (g - w).abs() <= tolerance * w.abs().max(1.0);
        assert!(same || near, "element {i}: got {g}, want {w}");
    }
}

/// The elements as float64.
pub fn values(t: &Tensor) -> Vec<f64> {
    t.to_f64s().unwrap()
}
