//! A device and its parts: what stands in for a part that is left out, an allocator of the user's
//! own, and what a device is asked for from its opening to its end.

#![cfg(not(target_arch = "wasm32"))]

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kilim::core::Backend;
use kilim::core::backend::{
    Allocator, BackendContext, BackendRegistry, ContextConfig, Description, Executable,
    LocalFuture, NodeSpec, RawConstants, Refusal, StageSpec, StageTensors, TensorRegistry,
    TensorSpec,
};
use kilim::core::memory::{Arena, ArenaMemory, HostMemory, Ledger};
use kilim::core::ops::{Binary, BinaryKind, Cost, Unary, UnaryKind};
use kilim::core::schedule::{Scheduler, StageRun, SyncScheduler, Trace};
use kilim::{
    BackendId, DType, Dim, ErrorCode, Fact, Graph, Result, RunOptions, Runtime, Session,
    SessionOptions, Shape, Sharing, Tensor,
};

fn cpu() -> Arc<dyn Backend> {
    pollster::block_on(Runtime::shared().backend(&BackendId::new("cpu"))).unwrap()
}

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

/// The same with an allocator.
struct Pooled(Bare, Arc<Counting>);

impl Backend for Pooled {
    fn describe(&self) -> &Description {
        self.0.describe()
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        self.0.supports(node)
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        self.0.create_context(config)
    }

    fn allocator(&self) -> Arc<dyn Allocator> {
        self.1.clone()
    }
}

/// Host memory, twice as much for a tensor as it needs, and at most so much at once; counted.
struct Counting {
    most: usize,
    given: Mutex<Vec<usize>>,
    back: Mutex<Vec<usize>>,
}

impl Counting {
    fn new(most: usize) -> Arc<Counting> {
        Arc::new(Counting {
            most,
            given: Mutex::default(),
            back: Mutex::default(),
        })
    }

    fn given(&self) -> Vec<usize> {
        self.given.lock().unwrap().clone()
    }

    fn back(&self) -> Vec<usize> {
        self.back.lock().unwrap().clone()
    }
}

impl Allocator for Counting {
    fn tensor_bytes(&self, tensor: &TensorSpec) -> usize {
        2 * tensor.bytes()
    }

    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
        if bytes > self.most {
            let error = kilim::Error::new(ErrorCode::Limit, "the pool is empty");
            return Err(error.with_got(bytes));
        }
        self.given.lock().unwrap().push(bytes);
        Ok(Box::new(HostMemory::zeroed(bytes)?))
    }

    fn release(&self, memory: Box<dyn ArenaMemory>) {
        let memory: Box<dyn std::any::Any> = memory;
        let memory = memory.downcast::<HostMemory>().unwrap();
        self.back.lock().unwrap().push(memory.base().1);
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

fn options(backends: &[&str], sharing: Sharing) -> SessionOptions {
    let mut options = SessionOptions {
        backends: backends.iter().map(|&b| BackendId::from(b)).collect(),
        ..SessionOptions::default()
    };
    options.core.sharing = sharing;
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
    with.core.scheduler = Arc::new(Noting(scheduled.clone()));
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
    let given = bare.create_arena(1000).unwrap();
    let mut guard = given.lock(1000).unwrap();
    let memory = guard.memory::<HostMemory>().unwrap();
    assert_eq!(memory.map(|m| m.base().1), Some(1000));
    drop(guard);
    // The default of a session's own options.
    let default = SessionOptions::default().core.scheduler;
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

#[test]
fn a_backend_may_bring_an_allocator() {
    let allocator = Counting::new(1 << 20);
    let pooled = Pooled(Bare::new(), allocator.clone());
    let runtime = Runtime::default().with_backend(Arc::new(pooled));
    let open = |sharing| {
        let session = runtime.session(graph(), options(&["bare"], sharing));
        pollster::block_on(session).unwrap()
    };
    let mut own = open(Sharing::Own);
    assert!(allocator.given().is_empty(), "nothing is planned yet");
    run(&mut own, 100).unwrap();
    let needed = arena(&own);
    assert_eq!(allocator.given(), [needed]);
    let plan = own.report().memory.remove(0);
    assert!(plan.tensors.iter().all(|t| t.bytes == 800), "{plan:?}");
    assert_eq!(plan.bytes.next_multiple_of(64), needed);
    // In one go, and not again while it suffices.
    run(&mut own, 50).unwrap();
    run(&mut own, 100).unwrap();
    assert_eq!(allocator.given(), [needed]);
    own.clear();
    assert_eq!(allocator.back(), [needed]);
    run(&mut own, 100).unwrap();
    assert_eq!(allocator.given(), [needed; 2]);
    drop(own);
    assert_eq!(allocator.back(), [needed; 2]);

    let mut shared = [(); 2].map(|()| open(Sharing::ShareOneThread));
    for session in &mut shared {
        run(session, 100).unwrap();
    }
    assert_eq!(allocator.given(), [needed; 3]);
    drop(shared);
    assert_eq!(allocator.back(), [needed; 3]);

    let backend = pollster::block_on(runtime.backend(&BackendId::new("bare"))).unwrap();
    let given = backend.create_arena(needed).unwrap();
    run(&mut open(Sharing::External(vec![given.clone()])), 100).unwrap();
    assert_eq!(allocator.given(), [needed; 4]);
    assert_eq!(allocator.back(), [needed; 3]);
    drop(given);
    assert_eq!(allocator.back(), [needed; 4]);
}

#[test]
fn an_allocator_that_has_no_more_is_an_error_and_not_the_end() {
    let allocator = Counting::new(4096);
    let pooled = Pooled(Bare::new(), allocator.clone());
    let runtime = Runtime::default().with_backend(Arc::new(pooled));
    let session = runtime.session(graph(), options(&["bare"], Sharing::Own));
    let mut session = pollster::block_on(session).unwrap();
    run(&mut session, 100).unwrap();
    let error = run(&mut session, 100_000).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Limit);
    assert_eq!(error.message(), "the pool is empty");
    run(&mut session, 100).unwrap();
    drop(session);
    assert_eq!(allocator.given(), allocator.back());
}

thread_local! {
    static LOG: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

fn log(call: &'static str) {
    LOG.with_borrow_mut(|log| log.push(call));
}

/// What was called since the last time that this was asked.
fn calls() -> Vec<&'static str> {
    LOG.take()
}

/// The backend `cpu`, noting what it is asked for.
struct Noted(Bare);

impl Backend for Noted {
    fn describe(&self) -> &Description {
        self.0.describe()
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        log("supports");
        self.0.supports(node)
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        log("create_context");
        Ok(Box::new(NotedContext(self.0.create_context(config)?)))
    }

    fn allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(NotedAllocator)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        log("drop backend");
    }
}

struct NotedAllocator;

impl Allocator for NotedAllocator {
    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
        log("allocate");
        Ok(Box::new(HostMemory::zeroed(bytes)?))
    }

    fn release(&self, _: Box<dyn ArenaMemory>) {
        log("release");
    }
}

struct NotedContext(Box<dyn BackendContext>);

impl BackendContext for NotedContext {
    fn resize_begin(&mut self, raw: RawConstants) -> Result<()> {
        log("resize_begin");
        self.0.resize_begin(raw)
    }

    fn gen_tensors(&mut self, stage: &StageSpec) -> Result<Arc<StageTensors>> {
        log("gen_tensors");
        self.0.gen_tensors(stage)
    }

    fn gen_kernels(
        &mut self,
        stage: StageSpec,
        tensors: Arc<StageTensors>,
    ) -> Result<Box<dyn Executable>> {
        log("gen_kernels");
        let inner = self.0.gen_kernels(stage, tensors)?;
        Ok(Box::new(NotedExecutable(inner)))
    }

    fn resize_end(&mut self) -> Result<()> {
        log("resize_end");
        self.0.resize_end()
    }

    fn warm_up(&mut self) -> LocalFuture<'_, Result<()>> {
        log("warm_up");
        self.0.warm_up()
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        log("wait_finish");
        self.0.wait_finish()
    }

    fn tensors(&self) -> &TensorRegistry {
        self.0.tensors()
    }

    fn ledger(&self) -> &Ledger {
        self.0.ledger()
    }

    fn arena(&self) -> &Arena {
        self.0.arena()
    }
}

impl Drop for NotedContext {
    fn drop(&mut self) {
        log("drop context");
    }
}

struct NotedExecutable(Box<dyn Executable>);

impl Executable for NotedExecutable {
    fn execute_begin(&mut self) -> Result<()> {
        log("execute_begin");
        self.0.execute_begin()
    }

    fn write(&mut self, tensor: usize, data: &Tensor) -> Result<()> {
        log("write");
        self.0.write(tensor, data)
    }

    fn copy(&mut self, from: usize, to: usize) -> Result<()> {
        self.0.copy(from, to)
    }

    fn run(&mut self, part: usize) -> Result<()> {
        log("run");
        self.0.run(part)
    }

    fn submit(&mut self) -> Result<()> {
        log("submit");
        self.0.submit()
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        log("wait_finish");
        self.0.wait_finish()
    }

    fn read<'a>(&'a mut self, tensors: &'a [usize]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        log("read");
        self.0.read(tensors)
    }

    fn execute_end(&mut self) -> Result<()> {
        log("execute_end");
        self.0.execute_end()
    }

    fn launches(&self) -> usize {
        self.0.launches()
    }
}

impl Drop for NotedExecutable {
    fn drop(&mut self) {
        log("drop executable");
    }
}

fn open_noted() -> LocalFuture<'static, Result<Arc<dyn Backend>>> {
    log("open");
    let noted: Arc<dyn Backend> = Arc::new(Noted(Bare::new()));
    Box::pin(std::future::ready(Ok(noted)))
}

/// The whole life of a device: docs/backends.md has the names that other designs give these calls.
#[test]
fn a_device_lives_from_open_to_drop() {
    let prepare = ["resize_begin", "gen_tensors", "gen_kernels", "resize_end"];
    let run_once = ["execute_begin", "write", "run", "read", "execute_end"];
    let mut registry = BackendRegistry::new();
    registry.register(BackendId::new("bare"), open_noted);
    let runtime = Runtime::new(registry);
    assert_eq!(calls(), [""; 0], "a backend is opened when it is needed");

    let mut with = options(&["bare"], Sharing::Own);
    with.core.plans_kept = 1;
    let mut session = pollster::block_on(runtime.session(graph(), with)).unwrap();
    // What has known shapes would be planned already; here nothing has.
    let planned = ["resize_begin", "resize_end", "warm_up"];
    assert_eq!(
        calls(),
        [&["open", "create_context"], &planned[..]].concat()
    );

    run(&mut session, 100).unwrap();
    let mut seen = calls();
    let asked = seen.iter().filter(|&&c| c == "supports").count();
    assert_eq!(asked, 3, "every node is asked about once");
    seen.retain(|&c| c != "supports");
    let expected = [&prepare[..], &["allocate"], &run_once].concat();
    assert_eq!(seen, expected);

    run(&mut session, 100).unwrap();
    assert_eq!(calls(), run_once, "a plan is kept");

    run(&mut session, 1000).unwrap();
    let mut seen = calls();
    seen.retain(|&c| c != "supports");
    let growing = ["release", "allocate"];
    let dropped = seen.iter().position(|&c| c == "drop executable");
    seen.remove(dropped.expect("the plan of before goes"));
    let expected = [&prepare[..], &growing, &run_once].concat();
    assert_eq!(seen, expected);

    let traced = RunOptions {
        trace: Some(Arc::new(Trace::new())),
        ..RunOptions::default()
    };
    let x = Tensor::from_slice(&[1000], &[0.25f32; 1000]).unwrap();
    pollster::block_on(session.run(&[("x", x)], &traced)).unwrap();
    let expected = [
        "execute_begin",
        "write",
        "run",
        "submit",
        "wait_finish",
        "read",
        "execute_end",
    ];
    assert_eq!(calls(), expected);
    pollster::block_on(session.wait_finish()).unwrap();
    assert_eq!(calls(), ["wait_finish"]);

    drop(session);
    let mut seen = calls();
    seen.sort_unstable();
    assert_eq!(seen, ["drop context", "drop executable", "release"]);
    drop(runtime);
    assert_eq!(calls(), ["drop backend"]);
}
