//! Devices that are lost and opened again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kilim_core::backend::{Backend, ContextConfig, LocalFuture};
use kilim_core::memory::MemoryMode;
use kilim_core::ops::{Fact, MatMul, Unary, UnaryKind};
use kilim_core::schedule::{Scheduler, StageRun};
use kilim_core::{DType, ErrorCode, Graph, Result, RunOptions, Session, SessionOptions, Tensor};

use super::harness::{f32s, random};
use crate::WgpuBackend;
use crate::device::gpu::Gpu;

/// A device of this test's own.
fn open() -> Option<Arc<WgpuBackend>> {
    match pollster::block_on(Gpu::open()) {
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
