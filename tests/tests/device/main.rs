//! A device and its parts: what stands in for a part that is left out, an allocator of the user's
//! own ([`allocator`]), what a device is asked for from its opening to its end ([`life`]), and who
//! computes where nobody is named ([`picked`]).

#![cfg(not(target_arch = "wasm32"))]

mod allocator;
mod life;
mod picked;

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kilim::core::backend::{
    Allocator, BackendContext, BackendRegistry, ContextConfig, ContextState, Description,
    DeviceOptions, Executable, LocalFuture, NodeSpec, Progress, RawConstants, Refusal, StageSpec,
    StageTensors, TensorSpec,
};
use kilim::core::ids::{PartIndex, TensorIndex};
use kilim::core::memory::{ArenaMemory, HostMemory};
use kilim::core::ops::{Binary, BinaryKind, Cost, Unary, UnaryKind};
use kilim::core::schedule::{Scheduler, StageRun, SyncScheduler, Trace};
use kilim::core::{Backend, Interrupt};
use kilim::{
    BackendId, DType, Dim, ErrorCode, Fact, Graph, LoadOptions, Result, RunOptions, Runtime,
    Session, Shape, Sharing, Tensor,
};
use kilim_tests::machine::cpu;

/// The backend `cpu` under another name, with nothing that can be left out.
struct Bare {
    cpu: Arc<dyn Backend>,
    description: Description,
}

impl Bare {
    fn new() -> Bare {
        let cpu = cpu();
        Bare {
            description: Description {
                id: BackendId::new("bare"),
                ..cpu.describe().clone()
            },
            cpu,
        }
    }
}

impl Backend for Bare {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        self.cpu.supports(node)
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        self.cpu.create_context(config)
    }
}

/// `y = -exp(x * 2)`, so that two tensors lie in the arena.
fn graph() -> Graph {
    let mut g = Graph::new("device");
    let shape = Shape(vec![Dim::Symbol("n".into())]);
    let x = g.add_input("x", Fact::new(DType::F32, shape));
    let two = g.add_constant("two", Tensor::from_slice(&[1], &[2.0f32]).unwrap());
    let double = g.apply("double", Binary::new(BinaryKind::Mul), &[x, two]);
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[double]);
    let neg = g.apply("neg", Unary(UnaryKind::Neg), &[exp]);
    g.outputs.push(neg);
    g
}

fn options(backends: &[&str], sharing: Sharing) -> LoadOptions {
    let mut options = LoadOptions {
        backends: backends.iter().map(|&b| BackendId::from(b)).collect(),
        ..LoadOptions::default()
    };
    options.sharing = sharing;
    options
}

fn run(session: &mut Session, size: usize) -> Result<()> {
    let x = Tensor::from_slice(&[size], &vec![0.25f32; size])?;
    let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default()))?;
    let y = out[0].1.as_slice::<f32>()?;
    assert_eq!(y.len(), size);
    assert!(y.iter().all(|y| (y + 0.5f32.exp()).abs() < 1e-6), "{y:?}");
    Ok(())
}

fn arena(session: &Session) -> usize {
    session.report().backends[0].arena_bytes
}

#[test]
fn parts_that_are_left_out_have_defaults() {
    let runtime = Runtime::default().with_backend(Arc::new(Bare::new()));
    let scheduled = Arc::new(AtomicUsize::new(0));
    let mut with = options(&["bare"], Sharing::Own);
    with.scheduler = Arc::new(Noting(scheduled.clone()));
    let mut session = pollster::block_on(runtime.session(graph(), with)).unwrap();
    run(&mut session, 100).unwrap();
    // No scheduler of the backend's: the session's. No optimizer: its nodes are the graph's.
    assert_eq!(scheduled.load(Ordering::Relaxed), 1);
    let report = session.report();
    let names: Vec<_> = report.nodes.iter().map(|n| &*n.name).collect();
    assert_eq!(names, ["double", "exp", "neg"]);
    assert!(report.nodes.iter().all(|n| n.backend == "bare"));
    // No allocator: host memory, in which a tensor takes its own bytes.
    let plan = &report.memory[0];
    assert_eq!(plan.backend, "bare");
    assert_eq!(plan.bytes.next_multiple_of(64), arena(&session));
    assert!(plan.tensors.iter().all(|t| t.bytes == 400), "{plan:?}");

    let bare = Bare::new();
    assert!(bare.optimizer().is_none() && bare.scheduler().is_none());
    assert!(bare.operators().is_empty() && bare.save_cache().is_none());
    // Half precision is preferred where the backend grades it fast, and nowhere else.
    let halves = [TensorSpec::new(DType::F16, &[4])];
    let node = NodeSpec {
        name: "exp",
        op: &Unary(UnaryKind::Exp),
        inputs: &[Some(halves[0].clone())],
        outputs: &halves,
    };
    assert!(bare.supports(&node).is_ok());
    let refusal = bare.prefers_half(&node).unwrap_err();
    assert!(refusal.reason.starts_with("float16 is not faster on"));
    let given = bare.create_arena(1000).unwrap();
    let mut guard = given.lock(1000).unwrap();
    let memory = guard.memory::<HostMemory>().unwrap();
    assert_eq!(memory.map(|m| m.base().1), Some(1000));
    drop(guard);
    // The default of a session's own options.
    let default = LoadOptions::default().scheduler.clone();
    assert!(default.gives_way() && !default.overlaps());
    assert_eq!(default.runs_at_once(), 1);
}

/// A scheduler of the session's, which counts the stages that it runs.
struct Noting(Arc<AtomicUsize>);

impl Scheduler for Noting {
    fn run<'a>(&'a self, stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        SyncScheduler.run(stage)
    }
}
