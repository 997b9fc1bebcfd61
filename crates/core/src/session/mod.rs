//! A model made ready to run: optimised, placed on backends, planned for the shapes that come.

#[cfg(not(target_arch = "wasm32"))]
mod background;
#[cfg(target_arch = "wasm32")]
mod blank;
mod builtin;
mod handle;
#[cfg(not(target_arch = "wasm32"))]
mod import;
mod keep;
mod last;
mod layout;
mod open;
mod options;
mod owned;
mod plan;
mod precision;
mod record;
mod run;
mod runner;
mod shared;
mod tune;
mod variables;
mod wanted;

use std::sync::Arc;

use crate::backend::{Backend, RawConstants};
use crate::datum::Datum;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::TensorSpec;
use crate::graph::{Graph, Metadata};
use crate::interrupt::Interrupt;
use crate::report::{NodeTime, PrecisionOverride, PrecisionReport, Report};
use crate::schedule::TraceEvent;
use crate::tensor::Tensor;
use crate::threading::LocalFuture;

pub use crate::builtin::{Port, PortLayout};
#[cfg(not(target_arch = "wasm32"))]
pub use background::RunHandle;
use builtin::Ports;
pub(crate) use handle::Handle;
pub use keep::Keep;
pub use options::{RunOptions, SessionOptions};
pub use precision::MixedPrecision;
use record::Recorder;
pub use record::{NodeRecord, RecordedInput};
pub(crate) use run::Run;
pub(crate) use runner::Runner;
pub(crate) use shared::Shared;
use variables::Variables;

/// A model ready to run.
pub struct Session {
    shared: Shared,
    runner: Runner,
    ports: Ports,
    variables: Variables,
    /// Whether the graph has its constants still.
    raw: RawConstants,
    nodes_loaded: usize,
    precision: Option<PrecisionReport>,
    precisions: Vec<PrecisionOverride>,
    /// The events of the last run that was traced.
    timeline: Vec<TraceEvent>,
    #[cfg(not(target_arch = "wasm32"))]
    workers: Option<background::Workers>,
}

/// Who looks on at a run.
#[derive(Clone, Copy, Default)]
struct Watch {
    /// Times the nodes of every backend.
    profiling: bool,
    /// Keeps what every node reads and writes.
    records: bool,
}

/// The outputs of a run, and what was recorded.
type Watched = (Vec<(String, Datum)>, Vec<NodeRecord>);

impl Session {
    /// Names, element types and shapes of what a run takes, in the order of the model file.
    pub fn inputs(&self) -> &[Port] {
        &self.ports.inputs
    }

    /// Names, element types and shapes of the model's outputs, in the order of the model file.
    pub fn outputs(&self) -> &[Port] {
        &self.ports.outputs
    }

    /// What the model file says of itself.
    pub fn metadata(&self) -> &Metadata {
        &self.graph().metadata
    }

    /// Runs a model of tensors, see [`Session::run_data`].
    ///
    /// # Errors
    /// Those of [`Session::run_data`]; `DType` where an output is no tensor, `State` where it is kept.
    pub async fn run(
        &mut self,
        inputs: &[(&str, Tensor)],
        options: &RunOptions,
    ) -> Result<Vec<(String, Tensor)>> {
        let inputs = inputs.iter();
        let inputs = inputs.map(|(name, tensor)| (*name, tensor.clone().into()));
        let outputs = self.run_owned(inputs.collect(), options).await?;
        outputs
            .into_iter()
            .map(|(name, datum)| Ok((name, datum.into_tensor()?)))
            .collect()
    }

    /// Runs the model. Inputs may come in any order; outputs come in the model's. An optional input
    /// that is left out is absent. Outputs that the options keep come as [`Datum::Device`]. Where the options name outputs, only
    /// these come, and only nodes that they need run.
    ///
    /// # Errors
    /// `Input` for a missing or unknown input and for a name that no output has, `DType` and `Shape` where one does not fit what the
    /// model declares, `Device` for one whose device is gone; `Input`, `DType` and `Unsupported` for an output that cannot
    /// be kept (see [`Keep`]); whatever kernels and devices say, with the node's name.
    pub async fn run_data(
        &mut self,
        inputs: &[(&str, Datum)],
        options: &RunOptions,
    ) -> Result<Vec<(String, Datum)>> {
        self.run_owned(inputs.to_vec(), options).await
    }

    /// [`Session::run_data`] that is timed or recorded, with what was recorded. In a box: otherwise each crate that calls
    /// it has it in the binary once more.
    fn run_watched<'a>(
        &'a mut self,
        inputs: Vec<(&'a str, Datum)>,
        options: &'a RunOptions,
        watch: Watch,
    ) -> LocalFuture<'a, Result<Watched>> {
        Box::pin(async move {
            let mut feeds = self.ports.accept(inputs, &self.shared.options.layouts)?;
            let kept = self
                .ports
                .kept(&options.keep, &self.shared.options.layouts)?;
            let clock = self.shared.options.clock;
            let most = Some(self.shared.options.limits.run_seconds);
            let interrupt = Interrupt::on(options.abort.clone())
                .within(options.timeout, clock)
                .within(most, clock);
            interrupt.check()?;
            self.recover().await?;
            let _held = self.shared.lease()?;
            let mut host: Vec<bool> = kept.iter().map(|kept| !kept).collect();
            let asked = self.ports.asked(options.outputs.as_ref(), &kept)?;
            for (host, asked) in host.iter_mut().zip(asked.iter().flatten()) {
                *host &= asked;
            }
            self.variables.join(&mut feeds, &mut host);
            let mut run = Run::new(&mut self.shared, interrupt);
            run.trace = options.trace.clone().map(|t| {
                let number = t.begin();
                (t, number)
            });
            run.profiling = watch.profiling;
            run.keeps = kept.contains(&true) || host.len() > kept.len();
            #[cfg(not(target_arch = "wasm32"))]
            {
                let outputs = self.ports.outputs.iter().zip(&self.runner.graph().outputs);
                run.memory = import::places(outputs, &feeds, &options.keep)?;
            }
            run.recorder = watch.records.then(Recorder::default);
            if run.recorder.is_none() {
                run.asked.clone_from(&asked);
            }
            let results = self.runner.run(&mut run, feeds, &host).await;
            if let Some((trace, number)) = run.trace.take() {
                self.timeline = trace.events();
                self.timeline.retain(|e| e.run == number);
            }
            let records = run.recorder.take().unwrap_or_default().records;
            let mut results = results?;
            #[cfg(not(target_arch = "wasm32"))]
            import::deliver(&self.ports.outputs, &mut results, &options.keep).await?;
            let after = results.split_off(kept.len());
            let layouts = &self.shared.options.layouts;
            let outputs = self
                .ports
                .hand_out(results, &kept, asked.as_deref(), layouts);
            let outputs = outputs.await?;
            self.variables.take(after)?;
            Ok((outputs, records))
        })
    }

    /// Runs the model and fills buffers of the caller's with outputs: each takes the elements of the
    /// output it is named for as [`Tensor::bytes`] has them, and may be longer. Gives the element types
    /// and shapes, in the order of the buffers. Of other outputs, only those that the options keep are computed.
    ///
    /// # Errors
    /// Those of [`Session::run_data`]; `Input` for a name that no output has, `DType` for an output
    /// that is no tensor of numbers, `Limit` where a buffer is too short. No buffer is touched then.
    pub async fn run_into(
        &mut self,
        inputs: &[(&str, Datum)],
        buffers: &mut [(&str, &mut [u8])],
        options: &RunOptions,
    ) -> Result<Vec<TensorSpec>> {
        self.ports.check_names(buffers)?;
        let options = RunOptions {
            outputs: Some(Keep::new(buffers.iter().map(|(name, _)| *name))),
            ..options.clone()
        };
        let outputs = self.run_data(inputs, &options).await?;
        self.ports.fill(&outputs, buffers)
    }

    /// Starts a run and does not wait for it. As many runs as the scheduler allows
    /// ([`Scheduler::runs_at_once`]) are under way at once, each with arenas of its own beside
    /// those of [`Session::run`]; more wait in a queue. Weights are shared.
    ///
    /// # Errors
    /// As [`Session::run_data`] for inputs that do not fit; `Unsupported` for a model with variables; everything else comes
    /// out of the handle.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run_async(
        &mut self,
        inputs: &[(&str, Datum)],
        options: &RunOptions,
    ) -> Result<RunHandle> {
        self.variables.refuse_beside()?;
        self.ports
            .accept(inputs.to_vec(), &self.shared.options.layouts)?;
        let kept = self
            .ports
            .kept(&options.keep, &self.shared.options.layouts)?;
        self.ports.asked(options.outputs.as_ref(), &kept)?;
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

    /// A copy of this session for another run at the same time.
    #[cfg(not(target_arch = "wasm32"))]
    fn replica(&self) -> Result<Session> {
        let mut shared = self.shared.replica()?;
        let runner = self.runner.replica(&mut shared)?;
        if !runner.has_plan() {
            self.whole_graph()?;
        }
        Ok(Session {
            runner,
            shared,
            ports: self.ports.clone(),
            variables: self.variables.clone(),
            raw: self.raw,
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
        for b in self.shared.contexts.indices() {
            if self.shared.contexts[b].is_lost() {
                self.whole_graph()?;
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
    /// on; a backend that does not offer timers, such as a library without them, refuses to be told so.
    pub fn times(&self) -> Vec<NodeTime> {
        let mut times = Vec::new();
        self.runner
            .collect_times(&self.shared, &mut Vec::new(), &mut times);
        times
    }

    /// Runs the model once and times every node of the backends that can: nodes of others, such as libraries without
    /// timers, are not among the times. What a backend takes for all nodes of a step is in a
    /// [`crate::schedule::Trace`].
    pub async fn profile(
        &mut self,
        inputs: &[(&str, Datum)],
        options: &RunOptions,
    ) -> Result<(Vec<(String, Datum)>, Vec<NodeTime>)> {
        self.runner.clear_times();
        let watch = Watch {
            profiling: true,
            ..Watch::default()
        };
        let (outputs, _) = self.run_watched(inputs.to_vec(), options, watch).await?;
        Ok((outputs, self.times()))
    }

    /// Runs the model once and keeps what every node read and wrote, in the order of the runs; of
    /// nodes that run more than once, in a Loop, the first time. All nodes run, whichever outputs the options name.
    ///
    /// # Errors
    /// `State` where the session was not made with [`SessionOptions::keep_all`]; else as
    /// [`Session::run_data`].
    pub async fn record(
        &mut self,
        inputs: &[(&str, Datum)],
        options: &RunOptions,
    ) -> Result<(Vec<(String, Datum)>, Vec<NodeRecord>)> {
        if !self.shared.options.keep_all {
            return Err(Error::new(
                ErrorCode::State,
                "the session was not made to keep all values",
            ));
        }
        let watch = Watch {
            records: true,
            ..Watch::default()
        };
        self.run_watched(inputs.to_vec(), options, watch).await
    }

    /// The graph as it runs, after the passes; without the constants that were dropped once they were
    /// packed.
    pub fn graph(&self) -> &Graph {
        self.runner.graph()
    }

    /// The graph as it runs, whole.
    ///
    /// # Errors
    /// `State` where constants were dropped once they were packed.
    pub fn whole_graph(&self) -> Result<&Graph> {
        match self.raw {
            RawConstants::Keep => Ok(self.graph()),
            RawConstants::Drop => Err(Error::new(
                ErrorCode::State,
                "the session has let go of its weights, but for those in the form that kernels read",
            )
            .with_hint("load it with `keep_weights`, in JavaScript `keepWeights`")),
        }
    }

    /// The backends in the order of preference.
    pub fn backends(&self) -> &[Arc<dyn Backend>] {
        &self.shared.backends
    }

    /// What computes constants and shapes.
    pub fn evaluator(&self) -> &Arc<dyn Backend> {
        &self.shared.evaluator
    }

    /// What the session was made with, without `dims`: its graph has their sizes.
    pub fn options(&self) -> &SessionOptions {
        &self.shared.options
    }

    /// Gives the model's variables the values that they had before the first run. A model without variables stays as it is.
    pub fn reset(&mut self) {
        self.variables.reset(self.runner.graph());
    }

    /// Gives the model's variables the values that they have in another session of the model. Nothing is copied.
    ///
    /// # Errors
    /// `InvalidValue` where the other session's model has other variables.
    pub fn copy_variables(&mut self, from: &Session) -> Result<()> {
        self.variables.copy(&from.variables)
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

    /// A number that changes with what [`Session::report`] says of placement and memory: whenever a stage gets another
    /// plan. Of the changes of a plan whose inputs grow from run to run, the first, second, fourth, eighth and so on count.
    pub fn revision(&self) -> u64 {
        self.shared.revision
    }

    /// Where everything runs and why, and what it holds.
    pub fn report(&self) -> Report {
        let mut report = self.runner.report(&self.shared);
        report.nodes_loaded = self.nodes_loaded;
        report.variables = self.variables.names().to_vec();
        report.precision = self.precision.clone();
        report.precisions = self.precisions.clone();
        report.timeline = self.timeline.clone();
        report.tuning = self.shared.tuning.clone();
        report.cache.clone_from(&self.shared.options.cache_ignored);
        report
    }
}
