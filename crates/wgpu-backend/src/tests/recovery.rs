//! Devices that are lost and opened again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kilim_core::backend::{Backend, ContextConfig, LocalFuture};
use kilim_core::memory::MemoryMode;
use kilim_core::ops::{Fact, MatMul, Unary, UnaryKind};
use kilim_core::schedule::{Scheduler, StageRun};
use kilim_core::{
    DType, Datum, ErrorCode, Graph, Keep, Result, RunOptions, Session, SessionOptions, Tensor,
};

use super::harness::{f32s, random};
use crate::WgpuBackend;
use crate::device::gpu::Gpu;
use crate::device::selection::Selection;

/// A device of this test's own.
fn open() -> Option<Arc<WgpuBackend>> {
    match pollster::block_on(Gpu::open(&Selection::default())) {
        Ok(gpu) => Some(Arc::new(WgpuBackend::on(gpu, true))),
        Err(e) => {
            kilim_test_support::skip(e);
            None
        }
    }
}

fn session(backend: &Arc<WgpuBackend>, options: SessionOptions) -> Session {
    let mut g = Graph::new("product");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2, 8]));
    let w = g.add_constant("w", random(&[8, 4], 3));
    let y = g.apply("product", MatMul::default(), &[x, w]);
    let out = g.apply("neg", Unary(UnaryKind::Neg), &[y]);
    g.outputs.push(out);
    let options = SessionOptions {
        strict: true,
        ..options
    };
    let backends: Vec<Arc<dyn Backend>> = vec![backend.clone()];
    let evaluator = Arc::new(kilim_simd_cpu::backend());
    pollster::block_on(Session::new(g, backends, evaluator, options)).unwrap()
}

fn run(session: &mut Session) -> Result<Tensor> {
    let inputs = [("x", f32s(&[2, 8], &[0.5; 16]))];
    let out = pollster::block_on(session.run(&inputs, &RunOptions::default()))?;
    Ok(out[0].1.clone())
}

#[test]
fn the_next_run_opens_a_lost_device_again() {
    let Some(backend) = open() else { return };
    let open = || session(&backend, SessionOptions::default());
    let (mut a, mut b) = (open(), open());
    let want = run(&mut a).unwrap();
    let weights = |s: &Session| s.report().backends[0].constant_bytes;
    let before = weights(&a);
    for _ in 0..2 {
        let lost = backend.shared().gpu;
        lost.device.destroy();
        assert_eq!(run(&mut a).unwrap(), want);
        let again = backend.shared().gpu;
        assert!(!Arc::ptr_eq(&lost, &again));
        // The other session of the backend finds the device that is open already.
        assert_eq!(run(&mut b).unwrap(), want);
        assert!(Arc::ptr_eq(&again, &backend.shared().gpu));
    }
    assert_eq!(weights(&a), before);
}

#[test]
fn without_its_weights_a_session_does_not_come_back() {
    let Some(backend) = open() else { return };
    let thrifty = |keep_weights| SessionOptions {
        context: ContextConfig {
            memory: MemoryMode::Limit,
            ..ContextConfig::default()
        },
        keep_weights,
        ..SessionOptions::default()
    };
    let mut kept = session(&backend, thrifty(true));
    let mut gone = session(&backend, thrifty(false));
    let want = run(&mut kept).unwrap();
    assert_eq!(run(&mut gone).unwrap(), want);
    backend.shared().gpu.device.destroy();
    let error = run(&mut gone).unwrap_err();
    assert_eq!(error.code(), ErrorCode::State, "{error}");
    assert_eq!(run(&mut kept).unwrap(), want);
}

/// Destroys the device once, when everything is recorded.
struct Saboteur {
    backend: Arc<WgpuBackend>,
    armed: AtomicBool,
}

impl Scheduler for Saboteur {
    fn run<'a>(&'a self, mut stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            for i in 0..stage.steps.len() {
                stage.execute(i).await?;
            }
            if self.armed.swap(false, Ordering::Relaxed) {
                self.backend.shared().gpu.device.destroy();
            }
            Ok(())
        })
    }
}

#[test]
fn a_run_that_loses_its_device_is_an_error() {
    let Some(backend) = open() else { return };
    let saboteur = Arc::new(Saboteur {
        backend: backend.clone(),
        armed: AtomicBool::new(false),
    });
    let options = SessionOptions {
        scheduler: saboteur.clone(),
        ..SessionOptions::default()
    };
    let mut s = session(&backend, options);
    let want = run(&mut s).unwrap();
    saboteur.armed.store(true, Ordering::Relaxed);
    let error = run(&mut s).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device, "{error}");
    assert_eq!(run(&mut s).unwrap(), want);
}

/// `y = -x`, which stays on the device.
fn negative(session: &mut Session, x: Datum) -> Result<Datum> {
    let options = RunOptions {
        keep: Keep::new(["*"]),
        ..RunOptions::default()
    };
    let mut out = pollster::block_on(session.run_data(&[("x", x)], &options))?;
    Ok(out.remove(0).1)
}

fn read(datum: &Datum) -> Result<Tensor> {
    match datum {
        Datum::Device(tensor) => pollster::block_on(tensor.read()),
        other => panic!("{other:?} is on no device"),
    }
}

#[test]
fn what_was_kept_goes_with_its_device() {
    let (Some(here), Some(there)) = (open(), open()) else {
        return;
    };
    let session = |backend: &Arc<WgpuBackend>| {
        let mut g = Graph::new("negative");
        let x = g.add_input("x", Fact::fixed(DType::F32, &[3]));
        let y = g.apply("y", Unary(UnaryKind::Neg), &[x]);
        g.outputs.push(y);
        let backends: Vec<Arc<dyn Backend>> = vec![backend.clone()];
        let evaluator = Arc::new(kilim_simd_cpu::backend());
        let session = Session::new(g, backends, evaluator, SessionOptions::default());
        pollster::block_on(session).unwrap()
    };
    let (mut a, mut b) = (session(&here), session(&there));
    let x: Datum = f32s(&[3], &[1.0, 2.0, 3.0]).into();
    let kept = negative(&mut a, x.clone()).unwrap();
    let again = negative(&mut a, kept.clone()).unwrap();
    // Another device gets it over the host.
    let elsewhere = negative(&mut b, kept.clone()).unwrap();
    for same in [&again, &elsewhere] {
        assert_eq!(read(same).unwrap(), *x.tensor().unwrap());
    }
    here.shared().gpu.device.destroy();
    for _ in 0..2 {
        let error = read(&kept).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Device, "{error}");
        for session in [&mut a, &mut b] {
            let error = negative(session, kept.clone()).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Device, "{error}");
            let fresh = negative(session, x.clone()).unwrap();
            assert_eq!(
                read(&negative(session, fresh).unwrap()).unwrap(),
                *x.tensor().unwrap()
            );
        }
    }
    assert_eq!(read(&elsewhere).unwrap(), *x.tensor().unwrap());
}
