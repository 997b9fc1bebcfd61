//! A model made ready to run: optimised, placed on backends, planned for the shapes that come.

#[cfg(not(target_arch = "wasm32"))]
mod background;
mod handle;
mod layouts;
mod plan;
mod precision;
mod record;
mod runner;

use std::collections::HashMap;
use std::sync::Arc;

use crate::backend::{
    Backend, BackendConfig, BackendConfigs, BackendContext, ContextConfig, DataLayout, Half,
    Memory, NodeSpec, RawConstants,
};
use crate::calibrate::Calibration;
use crate::datum::{Datum, Kind};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::graph::Graph;
use crate::memory::{Arena, Lease, MemoryMode, Sharing};
use crate::ops::Fact;
use crate::partition::{Placement, Site};
use crate::passes;
use crate::pin::{self, Pin, PrecisionPin};
use crate::report::{NodeTime, PrecisionOverride, PrecisionReport, Report};
use crate::schedule::{Interrupt, Scheduler, SyncScheduler, Trace, TraceEvent};
use crate::tensor::{Tensor, byte_count};

#[cfg(not(target_arch = "wasm32"))]
pub use background::RunHandle;
pub(crate) use handle::Handle;
pub use layouts::PortLayout;
pub use precision::MixedPrecision;
use record::Recorder;
pub use record::{NodeRecord, RecordedInput};
pub(crate) use runner::Runner;

/// How a session is made.
#[derive(Clone)]
pub struct SessionOptions {
    pub placement: Placement,
    /// What was measured of the devices; the others are priced by what they say of themselves.
    pub calibration: Calibration,
    /// A node that the first backend does not run is an error (control flow, views, what is
    /// computed while planning and pinned nodes aside).
    pub strict: bool,
    /// Nodes that must run on a certain backend.
    pub pins: Vec<Pin>,
    /// Nodes that must compute in a certain floating-point type.
    pub precisions: Vec<PrecisionPin>,
    /// Off: the graph runs as it was loaded.
    pub optimise: bool,
    /// Nodes may compute in half precision, within this.
    pub mixed_precision: Option<MixedPrecision>,
    /// Every value leaves its stage, as [`Session::record`] needs it. Costs memory and time.
    pub keep_all: bool,
    /// Sizes for symbolic dimensions, so that the session can be planned before the first run.
    pub dims: HashMap<String, usize>,
    /// Also plan before the first run where sizes are unknown, taking this for each of them.
    pub plan_unknown_as: Option<usize>,
    /// Plans kept for each stage, one for each set of input shapes: the latest. One is kept in
    /// [`MemoryMode::Limit`].
    pub plans_kept: usize,
    /// Iterations after which a Loop is an error.
    pub max_iterations: u64,
    /// The largest tensor, in bytes.
    pub max_tensor_bytes: usize,
    /// The `arena` is chosen by `sharing`, the config of the backend by `configs`.
    pub context: ContextConfig,
    /// What is wanted of single backends.
    pub configs: BackendConfigs,
    /// Who owns the memory of intermediates.
    pub sharing: Sharing,
    /// Inputs and outputs, by name, that the user has in another layout than the model.
    pub layouts: HashMap<String, PortLayout>,
    pub scheduler: Arc<dyn Scheduler>,
    /// Seconds since some moment, for timeouts.
    pub clock: fn() -> f64,
}

impl SessionOptions {
    fn create_context(&self, backend: &Arc<dyn Backend>) -> Result<Box<dyn BackendContext>> {
        backend.create_context(&ContextConfig {
            arena: Some(Arena::of_session(&self.sharing, backend)?),
            backend: self.config(backend)?,
            ..self.context.clone()
        })
    }

    /// What a backend is to do.
    fn config(&self, backend: &Arc<dyn Backend>) -> Result<BackendConfig> {
        let described = backend.describe();
        self.configs.get(&described.id).resolve(described)
    }

    /// The layout that spatial operators are brought to: the one that the user wants on the first
    /// backend for which there is such a wish, else channels-last where a backend is fastest with it.
    fn layout(&self, backends: &[Arc<dyn Backend>]) -> DataLayout {
        let mut ids = backends.iter().map(|b| &b.describe().id);
        if let Some(layout) = ids.find_map(|id| self.configs.get(id).layout) {
            return layout;
        }
        let last = DataLayout::ChannelsLast;
        let best = |b: &Arc<dyn Backend>| b.describe().config.layouts.first() == Some(&last);
        match backends.iter().any(best) {
            true => last,
            false => DataLayout::ChannelsFirst,
        }
    }
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            placement: Placement::default(),
            calibration: Calibration::default(),
            strict: false,
            pins: Vec::new(),
            precisions: Vec::new(),
            optimise: true,
            mixed_precision: None,
            keep_all: false,
            dims: HashMap::new(),
            plan_unknown_as: None,
            plans_kept: 4,
            max_iterations: 1 << 32,
            max_tensor_bytes: usize::MAX / 4,
            context: ContextConfig::default(),
            configs: BackendConfigs::default(),
            sharing: Sharing::default(),
            layouts: HashMap::new(),
            scheduler: Arc::new(SyncScheduler),
            clock: default_clock,
        }
    }
}

/// Seconds since the first call. The web has no clock of its own; the bindings bring one.
fn default_clock() -> f64 {
    #[cfg(target_arch = "wasm32")]
    return 0.0;
    #[cfg(not(target_arch = "wasm32"))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_secs_f64()
    }
}

/// What may stop a run, and where it is recorded.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// Set to true from elsewhere to abort between two steps.
    pub abort: Option<Arc<std::sync::atomic::AtomicBool>>,
    /// Seconds after which the run is aborted.
    pub timeout: Option<f64>,
    /// Records when each step ran. The device is waited for after every part.
    pub trace: Option<Arc<Trace>>,
}

/// An input or output of a model.
#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub fact: Fact,
}

impl Port {
    /// The ports of a graph's inputs or outputs.
    pub fn all(graph: &Graph, ids: &[crate::ValueId]) -> Vec<Port> {
        let port = |&v: &crate::ValueId| Port {
            name: graph.value(v).name.clone(),
            fact: graph.value(v).fact.clone(),
        };
        ids.iter().map(port).collect()
    }
}

/// What all runners of a session share.
pub(crate) struct Shared {
    pub backends: Vec<Arc<dyn Backend>>,
    /// The backends as the partitioner prices them.
    pub sites: Vec<Site>,
    pub contexts: Vec<Box<dyn BackendContext>>,
    /// What each backend is to do.
    pub configs: Vec<BackendConfig>,
    pub evaluator: Arc<dyn Backend>,
    pub options: SessionOptions,
    pub interrupt: Interrupt,
    /// Of the run under way, and the run's number in it.
    pub trace: Option<(Arc<Trace>, usize)>,
    pub profiling: bool,
    /// Takes what every node reads and writes, if somebody wants to know.
    pub recorder: Option<Recorder>,
    next_runner: u64,
    /// Calls of `resize` under way, one within the other.
    resizing: usize,
}

impl Shared {
    /// `Limit` where a tensor is larger than the session allows.
    pub fn check_bytes(&self, dtype: DType, shape: &[usize]) -> Result<()> {
        let most = self.options.max_tensor_bytes;
        if byte_count(dtype, shape)? <= most {
            return Ok(());
        }
        let message = format!("a {dtype} tensor of shape {shape:?} is too large");
        Err(Error::new(ErrorCode::Limit, message).with_expected(format!("at most {most} bytes")))
    }

    /// Whether the nodes of a backend are timed.
    pub fn is_timed(&self, backend: usize) -> bool {
        self.profiling || self.configs[backend].timers
    }

    /// Runs a node on host tensors now.
    pub fn evaluate(&self, node: &NodeSpec) -> Option<Result<Vec<Tensor>>> {
        self.evaluator.evaluate(node)
    }

    /// Plans, and has every backend allocate what the plans need when the outermost call is done.
    pub fn resize<T>(
        &mut self,
        raw: RawConstants,
        plan: impl FnOnce(&mut Shared) -> Result<T>,
    ) -> Result<T> {
        if self.resizing == 0 {
            for context in &mut self.contexts {
                context.resize_begin(raw)?;
            }
        }
        self.resizing += 1;
        let planned = plan(self);
        self.resizing -= 1;
        if self.resizing == 0 {
            for context in &mut self.contexts {
                context.resize_end()?;
            }
        }
        planned
    }

    /// Raw constants go once they are packed where nothing can be planned later. A device may be
    /// lost and come back, for which they stay, unless memory is short.
    fn raw_constants(&self, inputs: &[Port], runner: &Runner) -> RawConstants {
        let is_fixed = |p: &Port| p.fact.kind.is_tensor() && p.fact.concrete().is_some();
        let fixed = inputs.iter().all(is_fixed);
        let on_host = |b: &Arc<dyn Backend>| b.describe().memory == Memory::Host;
        let thrifty = self.options.context.memory == MemoryMode::Limit;
        let recorded = self.options.keep_all;
        match !recorded
            && fixed
            && runner.plans_once()
            && (thrifty || self.backends.iter().all(on_host))
        {
            true => RawConstants::Drop,
            false => RawConstants::Keep,
        }
    }

    /// Plans kept for each stage.
    pub fn plans_kept(&self) -> usize {
        match self.options.context.memory {
            MemoryMode::Normal => self.options.plans_kept.max(1),
            MemoryMode::Limit => 1,
        }
    }

    /// Holds the arenas for a run.
    fn lease(&self) -> Result<Vec<Lease>> {
        self.contexts.iter().map(|c| c.arena().lease()).collect()
    }

    pub fn runner_id(&mut self) -> u64 {
        self.next_runner += 1;
        self.next_runner
    }

    /// For another run at the same time. Constants are shared where a backend can do that.
    #[cfg(not(target_arch = "wasm32"))]
    fn replica(&self) -> Result<Shared> {
        let backends = self.backends.iter().zip(&self.contexts);
        let contexts = backends.map(|(b, c)| match c.replica() {
            Some(context) => Ok(context),
            None => b.create_context(&ContextConfig {
                arena: Some(Arena::new(b.allocator())),
                backend: self.options.config(b)?,
                ..self.options.context.clone()
            }),
        });
        Ok(Shared {
            contexts: contexts.collect::<Result<_>>()?,
            backends: self.backends.clone(),
            configs: self.configs.clone(),
            sites: self.sites.clone(),
            evaluator: self.evaluator.clone(),
            options: self.options.clone(),
            interrupt: Interrupt::default(),
            trace: None,
            profiling: false,
            recorder: None,
            next_runner: 0,
            resizing: 0,
        })
    }
}

/// A model ready to run.
pub struct Session {
    shared: Shared,
    runner: Runner,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    nodes_loaded: usize,
    precision: Option<PrecisionReport>,
    precisions: Vec<PrecisionOverride>,
    /// Of the last run that was traced.
    timeline: Vec<TraceEvent>,
    #[cfg(not(target_arch = "wasm32"))]
    workers: Option<background::Workers>,
}

impl Session {
    /// Optimises and places `graph`. `backends` stand in the order of preference; `evaluator`
    /// computes constants and shapes, and needs not be one of them.
    ///
    /// # Errors
    /// `InvalidGraph`, `Shape`, `DType` for a graph that cannot be; `NoBackend` with a list of all
    /// nodes that no backend takes; `Limit` and `Device` as the devices say.
    pub async fn new(
        mut graph: Graph,
        backends: Vec<Arc<dyn Backend>>,
        evaluator: Arc<dyn Backend>,
        mut options: SessionOptions,
    ) -> Result<Session> {
        if backends.is_empty() {
            return Err(Error::new(
                ErrorCode::NoBackend,
                "a session needs at least one backend",
            ));
        }
        let ids: Vec<_> = backends.iter().map(|b| b.describe().id.clone()).collect();
        pin::check(&options.pins, &ids)?;
        options.configs.check(&ids)?;
        let configs = backends.iter().map(|b| options.config(b));
        let configs = configs.collect::<Result<Vec<_>>>()?;
        if options.scheduler.gives_way()
            && let Some(scheduler) = backends.iter().find_map(|b| b.scheduler())
        {
            options.scheduler = scheduler;
        }
        graph.sort()?;
        let nodes_loaded = count_nodes(&graph);
        graph.fix_dims(&options.dims)?;
        let names = Port::all(&graph, &graph.outputs);
        let inputs = Port::all(&graph, &graph.inputs);
        let fold = |node: &NodeSpec| evaluator.evaluate(node);
        if options.optimise {
            let keeps = configs.iter().all(|c| c.f16 == Half::Kept);
            let narrow = |dtype: DType| match dtype {
                DType::F16 => !keeps,
                dtype => dtype == DType::BF16,
            };
            let layout = options.layout(&backends);
            passes::optimise(&mut graph, &fold, &narrow, layout)?;
        } else {
            passes::infer_graph(&mut graph)?;
        }
        let precisions = precision::force(&mut graph, &options.precisions)?;
        let precision = match &options.mixed_precision {
            Some(mixed) => {
                let chosen = precision::choose(&mut graph, &backends, &evaluator, &options, mixed);
                Some(chosen.await?)
            }
            None => None,
        };
        let mut outputs = Port::all(&graph, &graph.outputs);
        for (port, declared) in outputs.iter_mut().zip(names) {
            port.name = declared.name;
            port.fact.kind.optional |= declared.fact.kind.optional;
        }
        let contexts = backends
            .iter()
            .map(|b| options.create_context(b))
            .collect::<Result<Vec<_>>>()?;
        let sites = backends.iter().map(|b| {
            let site = Site::of(b.describe());
            let speed = options.calibration.speed(b.describe());
            Site {
                speed: speed.unwrap_or(site.speed),
                ..site
            }
        });
        let mut shared = Shared {
            sites: sites.collect(),
            backends,
            contexts,
            configs,
            evaluator,
            options,
            interrupt: Interrupt::default(),
            trace: None,
            profiling: false,
            recorder: None,
            next_runner: 0,
            resizing: 0,
        };
        let mut runner = Runner::new(graph, &mut shared)?;
        let mut facts: Vec<Fact> = inputs.iter().map(|p| p.fact.clone()).collect();
        if let Some(n) = shared.options.plan_unknown_as {
            let shapes = facts.iter_mut().filter_map(|f| f.shape.as_mut());
            for d in shapes.flat_map(|s| &mut s.0) {
                *d = Dim::Known(d.known().unwrap_or(n));
            }
        }
        let raw = shared.raw_constants(&inputs, &runner);
        shared.resize(raw, |shared| runner.prepare(shared, &facts, raw))?;
        for context in &mut shared.contexts {
            context.warm_up().await?;
        }
        Ok(Session {
            shared,
            runner,
            inputs,
            outputs,
            nodes_loaded,
            precision,
            precisions,
            timeline: Vec::new(),
            #[cfg(not(target_arch = "wasm32"))]
            workers: None,
        })
    }

    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Runs a model of tensors, see [`Session::run_data`].
    ///
    /// # Errors
    /// Those of [`Session::run_data`], and `DType` where an output is no tensor.
    pub async fn run(
        &mut self,
        inputs: &[(&str, Tensor)],
        options: &RunOptions,
    ) -> Result<Vec<(String, Tensor)>> {
        let inputs: Vec<(&str, Datum)> = inputs
            .iter()
            .map(|(name, tensor)| (*name, tensor.clone().into()))
            .collect();
        let outputs = self.run_data(&inputs, options).await?;
        outputs
            .into_iter()
            .map(|(name, datum)| Ok((name, datum.into_tensor()?)))
            .collect()
    }

    /// Runs the model. Inputs may come in any order; outputs come in the model's. An optional input
    /// that is left out is absent.
    ///
    /// # Errors
    /// `Input` for a missing or unknown input, `DType` and `Shape` where one does not fit what the
    /// model declares; whatever kernels and devices say, with the node's name.
    pub async fn run_data(
        &mut self,
        inputs: &[(&str, Datum)],
        options: &RunOptions,
    ) -> Result<Vec<(String, Datum)>> {
        let feeds = self.feeds(inputs)?;
        self.recover().await?;
        let clock = self.shared.options.clock;
        self.shared.interrupt = Interrupt {
            abort: options.abort.clone(),
            deadline: options.timeout.map(|t| (clock, clock() + t)),
        };
        self.shared.trace = options.trace.clone().map(|t| {
            let run = t.begin();
            (t, run)
        });
        let _held = self.shared.lease()?;
        let host = vec![true; self.outputs.len()];
        let results = self.runner.run(&mut self.shared, feeds, &host).await;
        if let Some((trace, run)) = self.shared.trace.take() {
            self.timeline = trace.events();
            self.timeline.retain(|e| e.run == run);
        }
        let results = results?;
        let mut out = Vec::with_capacity(results.len());
        for (port, handle) in self.outputs.iter().zip(results) {
            let datum = handle.into_datum(&mut self.shared).await?;
            let datum = self.shared.options.output_layout(port, datum)?;
            out.push((port.name.clone(), datum));
        }
        Ok(out)
    }

    /// Starts a run and does not wait for it. As many runs as the scheduler allows
    /// ([`Scheduler::runs_at_once`]) are under way at once, each with arenas of its own beside
    /// those of [`Session::run`]; more wait in a queue. Weights are shared.
    ///
    /// # Errors
    /// As [`Session::run_data`] for inputs that do not fit; everything else comes out of the handle.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run_async(
        &mut self,
        inputs: &[(&str, Datum)],
        options: &RunOptions,
    ) -> Result<RunHandle> {
        self.feeds(inputs)?;
        let workers = match &self.workers {
            Some(workers) => workers,
            None => {
                let count = self.shared.options.scheduler.runs_at_once().max(1);
                let replicas = (0..count).map(|_| self.replica()).collect::<Result<_>>()?;
                self.workers.insert(background::Workers::start(replicas)?)
            }
        };
        Ok(workers.enqueue(inputs, options))
    }

    /// The same session for another run at the same time.
    #[cfg(not(target_arch = "wasm32"))]
    fn replica(&self) -> Result<Session> {
        let mut shared = self.shared.replica()?;
        Ok(Session {
            runner: self.runner.replica(&mut shared)?,
            shared,
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            nodes_loaded: self.nodes_loaded,
            precision: self.precision.clone(),
            precisions: self.precisions.clone(),
            timeline: Vec::new(),
            workers: None,
        })
    }

    /// Makes contexts anew whose device was lost, and forgets the plans that were made with them.
    async fn recover(&mut self) -> Result<()> {
        let mut lost = false;
        for b in 0..self.shared.contexts.len() {
            if self.shared.contexts[b].is_lost() {
                let backend = &self.shared.backends[b];
                backend.reopen().await?;
                self.shared.contexts[b] = self.shared.options.create_context(backend)?;
                lost = true;
            }
        }
        if lost {
            self.runner.forget_plans();
        }
        Ok(())
    }

    /// What the nodes took in the last run, on backends whose timers [`SessionOptions::configs`] turns
    /// on.
    pub fn times(&self) -> Vec<NodeTime> {
        let mut times = Vec::new();
        self.runner
            .collect_times(&self.shared, &mut Vec::new(), &mut times);
        times
    }

    /// Runs the model once and times every node.
    pub async fn profile(
        &mut self,
        inputs: &[(&str, Datum)],
    ) -> Result<(Vec<(String, Datum)>, Vec<NodeTime>)> {
        self.shared.profiling = true;
        self.runner.clear_times();
        let result = self.run_data(inputs, &RunOptions::default()).await;
        self.shared.profiling = false;
        Ok((result?, self.times()))
    }

    /// Runs the model once and keeps what every node read and wrote, in the order of the runs; of
    /// nodes that run more than once, in a Loop, the first time.
    ///
    /// # Errors
    /// `State` where the session was not made with [`SessionOptions::keep_all`]; else as
    /// [`Session::run_data`].
    pub async fn record(
        &mut self,
        inputs: &[(&str, Datum)],
    ) -> Result<(Vec<(String, Datum)>, Vec<NodeRecord>)> {
        if !self.shared.options.keep_all {
            return Err(Error::new(
                ErrorCode::State,
                "the session was not made to keep all values",
            ));
        }
        self.shared.recorder = Some(Recorder::default());
        let result = self.run_data(inputs, &RunOptions::default()).await;
        let recorder = self.shared.recorder.take().unwrap_or_default();
        Ok((result?, recorder.records))
    }

    /// The graph as it runs, after the passes; without the constants that were dropped once they were
    /// packed.
    pub fn graph(&self) -> &Graph {
        self.runner.graph()
    }

    /// In the order of preference.
    pub fn backends(&self) -> &[Arc<dyn Backend>] {
        &self.shared.backends
    }

    /// What computes constants and shapes.
    pub fn evaluator(&self) -> &Arc<dyn Backend> {
        &self.shared.evaluator
    }

    pub fn options(&self) -> &SessionOptions {
        &self.shared.options
    }

    /// Gives the memory of intermediates back until the next run, which allocates it again.
    pub fn clear(&mut self) {
        for context in &mut self.shared.contexts {
            context.clear();
        }
    }

    /// Resolves when the devices have done everything that was submitted to them.
    ///
    /// # Errors
    /// `Device` where one was lost.
    pub async fn wait_finish(&mut self) -> Result<()> {
        for context in &mut self.shared.contexts {
            context.wait_finish().await?;
        }
        Ok(())
    }

    /// Where everything runs and why, and what it holds.
    pub fn report(&self) -> Report {
        let mut report = self.runner.report(&self.shared);
        report.nodes_loaded = self.nodes_loaded;
        report.precision = self.precision.clone();
        report.precisions = self.precisions.clone();
        report.timeline = self.timeline.clone();
        report
    }

    fn feeds(&self, given: &[(&str, Datum)]) -> Result<Vec<Handle>> {
        for (i, (name, _)) in given.iter().enumerate() {
            let known = self.inputs.iter().any(|p| p.name == *name);
            if !known || given[..i].iter().any(|(n, _)| n == name) {
                let names: Vec<_> = self.inputs.iter().map(|p| p.name.as_str()).collect();
                let what = if known {
                    "is given twice"
                } else {
                    "is not one of the model's"
                };
                return Err(
                    Error::new(ErrorCode::Input, format!("the input `{name}` {what}"))
                        .with_input(name)
                        .with_expected(names.join(", ")),
                );
            }
        }
        let mut feeds = Vec::with_capacity(self.inputs.len());
        for port in &self.inputs {
            let found = given.iter().find(|(n, _)| *n == port.name);
            let Some((_, datum)) = found else {
                if port.fact.kind.optional {
                    feeds.push(Handle::Absent);
                    continue;
                }
                return Err(Error::new(
                    ErrorCode::Input,
                    format!("the input `{}` is missing", port.name),
                )
                .with_input(&port.name)
                .with_expected(&port.fact));
            };
            let datum = &self.shared.options.input_layout(port, datum)?;
            check_form(port, datum)?;
            let tensors = match datum {
                Datum::Tensor(tensor) => std::slice::from_ref(tensor),
                Datum::Sequence(tensors) => tensors,
                _ => &[],
            };
            for tensor in tensors {
                check_input(port, tensor)?;
            }
            feeds.push(datum.clone().into());
        }
        Ok(feeds)
    }
}

/// `DType` where an input is not of the form that the model declares.
fn check_form(port: &Port, datum: &Datum) -> Result<()> {
    let kind = port.fact.kind;
    let fits = match datum.form() {
        Some(form) => form == kind.form,
        None => kind.optional,
    };
    if fits {
        return Ok(());
    }
    let got = datum
        .form()
        .map_or("nothing".to_string(), |form| Kind::from(form).to_string());
    Err(Error::new(
        ErrorCode::DType,
        format!("the input `{}` has the wrong form", port.name),
    )
    .with_input(&port.name)
    .with_expected(kind)
    .with_got(got))
}

/// Exporters give one name to dimensions that differ, so a symbol does not bind: where two of them
/// must agree, an operator says so.
fn check_input(port: &Port, tensor: &Tensor) -> Result<()> {
    let wrong = |code, message: String| {
        Err(Error::new(code, message)
            .with_input(&port.name)
            .with_expected(&port.fact)
            .with_got(Fact::of(tensor)))
    };
    if port.fact.dtype.is_some_and(|d| d != tensor.dtype()) {
        return wrong(
            ErrorCode::DType,
            format!("the input `{}` has the wrong element type", port.name),
        );
    }
    let Some(shape) = &port.fact.shape else {
        return Ok(());
    };
    let mut dims = shape.0.iter().zip(tensor.shape());
    if shape.rank() != tensor.rank() || !dims.all(|(d, &n)| d.known().is_none_or(|m| m == n)) {
        return wrong(
            ErrorCode::Shape,
            format!("the input `{}` has the wrong shape", port.name),
        );
    }
    Ok(())
}

fn count_nodes(graph: &Graph) -> usize {
    let inner =
        |n: &crate::Node| -> usize { n.op.subgraphs().iter().map(|g| count_nodes(g)).sum() };
    graph.nodes.iter().map(|n| 1 + inner(n)).sum()
}
