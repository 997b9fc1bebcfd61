//! What a device is asked for.

use crate::*;

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
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Executable>> {
        log("gen_kernels");
        let inner = self.0.gen_kernels(stage, tensors, interrupt)?;
        Ok(Box::new(NotedExecutable(inner)))
    }

    fn resize_end(&mut self) -> Result<()> {
        log("resize_end");
        self.0.resize_end()
    }

    fn warm_up<'a>(&'a mut self, interrupt: &'a Interrupt) -> LocalFuture<'a, Result<()>> {
        log("warm_up");
        self.0.warm_up(interrupt)
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        log("wait_finish");
        self.0.wait_finish()
    }

    fn state(&self) -> &ContextState {
        self.0.state()
    }

    fn state_mut(&mut self) -> &mut ContextState {
        self.0.state_mut()
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

    fn write(&mut self, tensor: TensorIndex, data: &Tensor) -> Result<()> {
        log("write");
        self.0.write(tensor, data)
    }

    fn copy(&mut self, from: TensorIndex, to: TensorIndex) -> Result<()> {
        self.0.copy(from, to)
    }

    fn run(&mut self, part: PartIndex, interrupt: &Interrupt) -> Result<Progress> {
        log("run");
        self.0.run(part, interrupt)
    }

    fn submit(&mut self) -> Result<()> {
        log("submit");
        self.0.submit()
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        log("wait_finish");
        self.0.wait_finish()
    }

    fn read<'a>(&'a mut self, tensors: &'a [TensorIndex]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
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

fn open_noted(_: &DeviceOptions) -> LocalFuture<'_, Result<Arc<dyn Backend>>> {
    log("open");
    let noted: Arc<dyn Backend> = Arc::new(Noted(Bare::new()));
    Box::pin(std::future::ready(Ok(noted)))
}

/// The whole life of a device: docs/placement.md has the names that other designs give these calls.
#[test]
fn a_device_lives_from_open_to_drop() {
    let prepare = ["resize_begin", "gen_tensors", "gen_kernels", "resize_end"];
    let run_once = ["execute_begin", "write", "run", "read", "execute_end"];
    let mut registry = BackendRegistry::new();
    registry.register(BackendId::new("bare"), open_noted);
    let runtime = Runtime::new(registry);
    assert_eq!(calls(), [""; 0], "a backend is opened when it is needed");

    let mut with = options(&["bare"], Sharing::Own);
    with.plans_kept = 1;
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
