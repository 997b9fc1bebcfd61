//! What executables do beside running kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kilim_core::backend::{
    Backend, ConstantKey, KernelSpec, Location, NodeSpec, StageSpec, TensorSlot, TensorSpec,
};
use kilim_core::ids::{KernelIndex, PartIndex, TensorIndex};
use kilim_core::ops::{Binary, BinaryKind, Gather, Unary, UnaryKind};
use kilim_core::{DType, ErrorCode, Interrupt, Tensor};

use super::harness::*;

/// `c = relu(a); d = c + k` in two parts.
fn two_parts(n: usize) -> StageSpec {
    let arena = |name: &str, offset| TensorSlot {
        name: name.into(),
        spec: TensorSpec::new(DType::F32, &[n]),
        location: Location::Arena { offset },
    };
    let constant = f32s(&[n], &vec![10.0; n]);
    let size = (n * 4).next_multiple_of(256);
    let node = |op: Arc<dyn kilim_core::Operator>, inputs: &[usize], output| KernelSpec {
        name: op.name().into(),
        op,
        inputs: inputs.iter().map(|&t| Some(TensorIndex(t))).collect(),
        outputs: vec![TensorIndex(output)],
    };
    StageSpec {
        tensors: [
            arena("a", 0),
            arena("c", size),
            // In the place of `a`, which is no longer needed.
            arena("d", 0),
            TensorSlot {
                name: "k".into(),
                spec: TensorSpec::of(&constant),
                location: Location::Constant(ConstantKey(7)),
            },
        ]
        .into(),
        nodes: [
            node(Arc::new(Unary(UnaryKind::Relu)), &[0], 1),
            node(Arc::new(Binary::new(BinaryKind::Add)), &[1, 3], 2),
        ]
        .into(),
        parts: [[0, 1], [1, 2]]
            .map(|[from, to]| KernelIndex(from)..KernelIndex(to))
            .into(),
        arena_bytes: 2 * size,
        ..StageSpec::default()
    }
}

#[test]
fn parts_run_one_after_the_other_and_again() {
    let Some(gpu) = gpu() else { return };
    let mut context = gpu.create_context(&Default::default()).unwrap();
    let mut e = context.prepare(two_parts(6), &Interrupt::NEVER).unwrap();
    for round in 0..3 {
        let x = random(&[6], round);
        e.execute_begin().unwrap();
        e.write(TensorIndex(0), &x).unwrap();
        e.run(PartIndex(0), &Interrupt::NEVER).unwrap();
        let c = pollster::block_on(e.read(&[TensorIndex(1)])).unwrap();
        e.run(PartIndex(1), &Interrupt::NEVER).unwrap();
        let d = pollster::block_on(e.read(&[2, 3, 1].map(TensorIndex))).unwrap();
        e.execute_end().unwrap();
        let relu: Vec<f64> = x.to_f64s().unwrap().iter().map(|v| v.max(0.0)).collect();
        close(&c[0], &relu, 0.0);
        close(&d[2], &relu, 0.0);
        let sum: Vec<f64> = relu.iter().map(|v| v + 10.0).collect();
        close(&d[0], &sum, 1e-6);
        close(&d[1], &[10.0; 6], 0.0);
    }
    assert_eq!(e.launches(), 2);
    assert_eq!(context.constant_bytes(), 24);
    // The same constant again is the same buffer.
    context.prepare(two_parts(6), &Interrupt::NEVER).unwrap();
    assert_eq!(context.constant_bytes(), 24);
}

#[test]
fn waiting_is_over_when_the_device_is_done() {
    let Some(gpu) = gpu() else { return };
    let mut context = gpu.create_context(&Default::default()).unwrap();
    let mut e = context
        .prepare(two_parts(1 << 16), &Interrupt::NEVER)
        .unwrap();
    for of_the_context in [false, true] {
        e.execute_begin().unwrap();
        e.write(TensorIndex(0), &random(&[1 << 16], 1)).unwrap();
        e.run(PartIndex(0), &Interrupt::NEVER).unwrap();
        e.submit().unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let told = done.clone();
        let queue = &gpu.shared().gpu.queue;
        queue.on_submitted_work_done(move || told.store(true, Ordering::Relaxed));
        match of_the_context {
            true => pollster::block_on(context.wait_finish()).unwrap(),
            false => pollster::block_on(e.wait_finish()).unwrap(),
        }
        assert!(done.load(Ordering::Relaxed));
        e.execute_end().unwrap();
    }
}

/// A write into the arena does not overtake what was recorded before it.
#[test]
fn writes_keep_their_place() {
    let Some(gpu) = gpu() else { return };
    let mut context = gpu.create_context(&Default::default()).unwrap();
    let mut e = context.prepare(two_parts(4), &Interrupt::NEVER).unwrap();
    e.execute_begin().unwrap();
    e.write(TensorIndex(0), &f32s(&[4], &[1.0; 4])).unwrap();
    e.run(PartIndex(0), &Interrupt::NEVER).unwrap();
    e.write(TensorIndex(0), &f32s(&[4], &[5.0; 4])).unwrap();
    let out = pollster::block_on(e.read(&[1, 0].map(TensorIndex))).unwrap();
    close(&out[0], &[1.0; 4], 0.0);
    close(&out[1], &[5.0; 4], 0.0);
}

#[test]
fn device_tensors_outlive_the_run() {
    let Some(gpu) = gpu() else { return };
    let mut context = gpu.create_context(&Default::default()).unwrap();
    let mut e = context.prepare(two_parts(5), &Interrupt::NEVER).unwrap();
    e.execute_begin().unwrap();
    e.write(TensorIndex(0), &f32s(&[5], &[2.0; 5])).unwrap();
    e.run(PartIndex(0), &Interrupt::NEVER).unwrap();
    let kept = e.export(TensorIndex(1)).unwrap();
    e.write(TensorIndex(0), &f32s(&[5], &[-2.0; 5])).unwrap();
    e.run(PartIndex(0), &Interrupt::NEVER).unwrap();
    e.execute_end().unwrap();
    close(&pollster::block_on(kept.read()).unwrap(), &[2.0; 5], 0.0);
    let mut other = context.prepare(two_parts(5), &Interrupt::NEVER).unwrap();
    other.execute_begin().unwrap();
    other.import(TensorIndex(0), &kept).unwrap();
    drop(kept);
    other.run(PartIndex(0), &Interrupt::NEVER).unwrap();
    other.run(PartIndex(1), &Interrupt::NEVER).unwrap();
    let out = pollster::block_on(other.read(&[TensorIndex(2)])).unwrap();
    close(&out[0], &[12.0; 5], 0.0);
}

/// `y = x[i]` with indices that only the run knows.
fn picking() -> StageSpec {
    let arena = |dtype, shape: &[usize], offset| TensorSlot {
        name: format!("at {offset}"),
        spec: TensorSpec::new(dtype, shape),
        location: Location::Arena { offset },
    };
    StageSpec {
        tensors: [
            arena(DType::F32, &[3, 2], 0),
            arena(DType::I64, &[2], 256),
            arena(DType::F32, &[2, 2], 512),
        ]
        .into(),
        nodes: [KernelSpec {
            name: "pick".into(),
            op: Arc::new(Gather { axis: 0 }),
            inputs: [0, 1].map(|t| Some(TensorIndex(t))).into(),
            outputs: vec![TensorIndex(2)],
        }]
        .into(),
        parts: [KernelIndex(0)..KernelIndex(1)].into(),
        arena_bytes: 768,
        ..StageSpec::default()
    }
}

#[test]
fn an_index_out_of_range_is_an_error_of_its_node() {
    let Some(gpu) = gpu() else { return };
    let mut context = gpu.create_context(&Default::default()).unwrap();
    let mut e = context.prepare(picking(), &Interrupt::NEVER).unwrap();
    let x = f32s(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut picked = |indices: [i64; 2]| {
        e.execute_begin().unwrap();
        e.write(TensorIndex(0), &x).unwrap();
        e.write(TensorIndex(1), &Tensor::from_slice(&[2], &indices).unwrap())
            .unwrap();
        e.run(PartIndex(0), &Interrupt::NEVER).unwrap();
        let read = pollster::block_on(e.read(&[TensorIndex(2)]));
        e.execute_end().unwrap();
        read
    };
    for outside in [3, -4, 1 << 32, i64::MIN] {
        let error = picked([0, outside]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue);
        assert!(error.to_string().contains("pick"), "{error}");
        close(&picked([0, -1]).unwrap()[0], &[1.0, 2.0, 5.0, 6.0], 0.0);
    }
}

#[test]
fn nodes_are_timed() {
    let Some(gpu) = gpu() else { return };
    let mut context = gpu.create_context(&Default::default()).unwrap();
    let mut e = context
        .prepare(two_parts(1 << 16), &Interrupt::NEVER)
        .unwrap();
    e.set_profiling(true);
    e.execute_begin().unwrap();
    e.write(TensorIndex(0), &random(&[1 << 16], 1)).unwrap();
    e.run(PartIndex(0), &Interrupt::NEVER).unwrap();
    e.run(PartIndex(1), &Interrupt::NEVER).unwrap();
    e.execute_end().unwrap();
    let seconds = pollster::block_on(e.profile()).unwrap();
    assert_eq!(seconds.len(), 2);
    assert!(seconds.iter().all(|&s| s > 0.0 && s < 10.0), "{seconds:?}");
}

#[test]
fn wrong_use_is_a_typed_error() {
    let Some(gpu) = gpu() else { return };
    let mut context = gpu.create_context(&Default::default()).unwrap();
    let mut e = context.prepare(two_parts(4), &Interrupt::NEVER).unwrap();
    let wrong = e.write(TensorIndex(0), &random(&[5], 1)).unwrap_err();
    assert_eq!(wrong.code(), ErrorCode::Shape);
    assert_eq!(
        e.write(TensorIndex(9), &random(&[5], 1))
            .unwrap_err()
            .code(),
        ErrorCode::State
    );
    assert_eq!(
        e.run(PartIndex(5), &Interrupt::NEVER).unwrap_err().code(),
        ErrorCode::State
    );
    let huge = StageSpec {
        arena_bytes: usize::MAX / 2,
        ..two_parts(4)
    };
    let Err(error) = context.prepare(huge, &Interrupt::NEVER) else {
        panic!("an arena of {} bytes was accepted", usize::MAX / 2)
    };
    assert_eq!(error.code(), ErrorCode::Limit);
    let odd = Tensor::zeros(DType::F64, &[2]).unwrap();
    let inputs = [Some(TensorSpec::of(&odd))];
    let outputs = [TensorSpec::of(&odd)];
    let refusal = gpu
        .supports(&NodeSpec {
            name: "n",
            op: &Unary(UnaryKind::Exp),
            inputs: &inputs,
            outputs: &outputs,
        })
        .unwrap_err();
    assert!(refusal.reason.contains("float64"), "{}", refusal.reason);
}

/// Begun one within the other; each has its own memory and its own faults.
#[test]
fn a_replica_runs_beside_its_original() {
    let Some(gpu) = gpu() else { return };
    let mut context = gpu.create_context(&Default::default()).unwrap();
    let mut original = context.prepare(picking(), &Interrupt::NEVER).unwrap();
    let mut other = context.replica().unwrap();
    let mut replica = other.replicate(&*original).unwrap();
    other.resize_end().unwrap();
    let x = f32s(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let indices = |of: [i64; 2]| Tensor::from_slice(&[2], &of).unwrap();
    for (e, of) in [(&mut original, [0, 7]), (&mut replica, [2, 1])] {
        e.execute_begin().unwrap();
        e.write(TensorIndex(0), &x).unwrap();
        e.write(TensorIndex(1), &indices(of)).unwrap();
        e.run(PartIndex(0), &Interrupt::NEVER).unwrap();
        e.submit().unwrap();
    }
    let out = pollster::block_on(replica.read(&[TensorIndex(2)])).unwrap();
    close(&out[0], &[5.0, 6.0, 3.0, 4.0], 0.0);
    let error = pollster::block_on(original.read(&[TensorIndex(2)])).unwrap_err();
    assert_eq!(
        (error.code(), error.node()),
        (ErrorCode::InvalidValue, Some("pick"))
    );
    replica.execute_begin().unwrap();
    replica.write(TensorIndex(1), &indices([0, -9])).unwrap();
    replica.run(PartIndex(0), &Interrupt::NEVER).unwrap();
    let error = pollster::block_on(replica.read(&[TensorIndex(2)])).unwrap_err();
    assert_eq!(error.node(), Some("pick"));
}
