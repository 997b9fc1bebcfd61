//! Plans one stage for concrete input shapes: [`infer`] finds shapes and computes what is known
//! already, [`place`] puts nodes on backends, [`order`] makes parts of them, [`tensors`] gives every
//! backend its tensors and finds crossings, [`arena`] gives intermediates their offsets, and every
//! backend makes its kernels. Where a backend cannot do its part, [`fallback`] plans without it. Where inputs of
//! other shapes come, [`adapt`] changes the plan; [`course`] tells shapes where inputs grow from run to run. [`asked`] says what of a
//! plan runs for some outputs.

mod adapt;
pub(super) mod arena;
mod asked;
mod changed;
mod course;
pub(super) mod fallback;
mod infer;
mod order;
mod place;
mod report;
mod rewrite;
mod run;
mod tensors;

use std::sync::Arc;

use adapt::Frame;
use asked::Share;
use fallback::Refused;
pub(super) use fallback::{Fallback, Obstacle};
use rewrite::Rewritten;

use super::runner::Needed;
use super::tune::{self, Trial};
use super::{Run, Shared};
use crate::backend::StageSpec;
use crate::error::{Error, ErrorCode, Result};
use crate::executable::Executable;
use crate::fact::TensorSpec;
use crate::graph::{Graph, NodeId, ValueId};
use crate::ids::{
    BackendIndex, IdMap, IdSet, KernelIndex, PartIndex, PerBackend, PerKernel, TensorIndex,
};
use crate::report::{CrossingReport, MemoryPlan, NodeReport};
use crate::schedule::{Step, StepLabel};
use crate::stages::Stages;
use crate::tensor::Tensor;

/// One stage of a graph, with what it reads from and gives to the others.
pub(super) struct StageInput<'a> {
    pub graph: &'a Graph,
    pub stages: &'a Stages,
    pub index: usize,
    pub live_out: &'a [ValueId],
    pub runner: u64,
    /// What is there when the stage starts, with contents where planning may use them.
    pub feeds: &'a [(ValueId, TensorSpec)],
    /// Nodes that are left to kernels although their outputs could be computed while planning: these would be others in every
    /// run.
    pub lively: &'a IdSet<NodeId>,
}

/// Where a value that leaves a stage comes from.
#[derive(Clone)]
pub(super) enum Source {
    /// An input of the stage, perhaps under another shape.
    Feed(ValueId, Vec<usize>),
    /// Computed while planning.
    Known(Tensor),
    /// A tensor of a backend.
    Tensor {
        backend: BackendIndex,
        tensor: TensorIndex,
        /// The place of the node that writes it in [`PlannedStage::nodes`].
        node: usize,
    },
}

/// A node with a kernel.
#[derive(Clone)]
pub(super) struct PlacedNode {
    pub name: String,
    pub op: String,
    pub backend: BackendIndex,
    pub kernel: KernelIndex,
    pub part: PartIndex,
    pub outputs: Vec<TensorIndex>,
    /// The places of the nodes before it whose outputs it reads.
    pub reads: Vec<usize>,
}

/// A stage that can run.
pub(super) struct PlannedStage {
    pub executables: PerBackend<Option<Box<dyn Executable>>>,
    pub steps: Vec<Step>,
    /// How each step is called in a trace.
    pub labels: Vec<StepLabel>,
    /// For each input of the stage, the tensors that take it.
    pub feeds: Vec<(ValueId, Vec<(BackendIndex, TensorIndex)>)>,
    pub results: Vec<(ValueId, Source)>,
    pub nodes: Vec<PlacedNode>,
    pub report: Vec<NodeReport>,
    pub crossings: Vec<CrossingReport>,
    /// The arenas, by backend.
    pub memory: Vec<(BackendIndex, MemoryPlan)>,
    /// Operations of one run, as far as shapes tell them.
    pub operations: f64,
    pub times: PerBackend<PerKernel<f64>>,
    /// What an adaptation starts from; `None` where the plan stays as it is.
    frame: Option<Frame>,
    /// What runs for some outputs, for the latest sets of these.
    shares: Vec<(Arc<Needed>, Arc<Share>)>,
    /// What ran in the latest run; `None` where that was everything.
    ran: Option<Arc<Share>>,
}

impl PlannedStage {
    /// This plan in the contexts of `shared`, if all backends can share their kernels.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn replica(&self, shared: &Shared) -> Option<PlannedStage> {
        let mut executables = PerBackend::new();
        for (executable, context) in self.executables.iter().zip(&shared.contexts) {
            executables.push(match executable {
                Some(e) => Some(context.replicate(&**e)?),
                None => None,
            });
        }
        Some(PlannedStage {
            executables,
            steps: self.steps.clone(),
            labels: self.labels.clone(),
            feeds: self.feeds.clone(),
            results: self.results.clone(),
            nodes: self.nodes.clone(),
            report: self.report.clone(),
            crossings: self.crossings.clone(),
            memory: self.memory.clone(),
            operations: self.operations,
            times: PerBackend::new(),
            frame: None,
            shares: Vec::new(),
            ran: None,
        })
    }
}

/// A stage that is planned, but has no kernels yet.
pub(super) struct Draft {
    stages: PerBackend<StageSpec>,
    steps: Vec<Step>,
    feeds: Vec<(ValueId, Vec<(BackendIndex, TensorIndex)>)>,
    results: Vec<(ValueId, Source)>,
    nodes: Vec<PlacedNode>,
    /// The graph's nodes behind `nodes`; none where a backend has changed the graph.
    ids: Vec<NodeId>,
    report: Vec<NodeReport>,
    crossings: Vec<CrossingReport>,
    memory: Vec<(BackendIndex, MemoryPlan)>,
    labels: Vec<StepLabel>,
    operations: f64,
    frame: Frame,
    /// Whether a backend took several nodes together, or gave one back: it saw shapes when it did so.
    rewritten: bool,
}

impl Draft {
    /// What is to be measured before there are kernels.
    pub fn trials(&self, shared: &mut Shared) -> Result<Vec<Trial>> {
        let mut trials = Vec::new();
        for (b, stage) in self.stages.entries() {
            tune::collect(stage, b, shared, &mut trials)?;
        }
        Ok(trials)
    }

    /// Has every backend make its tensors and kernels. `adapts`: inputs of other shapes may come.
    ///
    /// # Errors
    /// Those of [`crate::backend::BackendContext::gen_kernels`], with the nodes that they name.
    pub fn generate(self, run: &mut Run<'_>, adapts: bool) -> Result<PlannedStage, Obstacle> {
        let observer = run.shared.options.observer.clone();
        let observed = observer.map(|observer| (observer, self.stages.clone()));
        let mut executables = PerBackend::new();
        let mut adapts = adapts && !self.rewritten;
        // Constants that it has would stay until every kernel is made.
        let frame = adapts.then_some(self.frame);
        let backends = self.stages.indices();
        for (b, stage) in backends.zip(self.stages) {
            if stage.tensors.is_empty() {
                executables.push(None);
                continue;
            }
            let context = &mut run.shared.contexts[b];
            adapts &= context.adapts();
            let made = context
                .gen_tensors(&stage)
                .and_then(|tensors| context.gen_kernels(stage, tensors, &run.interrupt));
            let named = |name: &str| {
                let placed = self.nodes.iter().zip(&self.ids);
                let named = placed.filter(|(n, _)| n.backend == b && n.name == name);
                named.map(|(_, &id)| id).collect()
            };
            executables.push(Some(made.map_err(|e| {
                let nodes = e.node().map_or_else(Vec::new, named);
                Obstacle::of(b, nodes, e)
            })?));
        }
        if let Some((observer, stages)) = observed {
            report::tell(&*observer, &self.steps, &stages, run.shared);
        }
        Ok(PlannedStage {
            executables,
            steps: self.steps,
            labels: self.labels,
            feeds: self.feeds,
            results: self.results,
            nodes: self.nodes,
            report: self.report,
            crossings: self.crossings,
            memory: self.memory,
            operations: self.operations,
            times: PerBackend::new(),
            frame: frame.filter(|_| adapts),
            shares: Vec::new(),
            ran: None,
        })
    }
}

struct Planner<'a> {
    input: StageInput<'a>,
    /// What backends do not run although they support it.
    refused: &'a Refused,
    /// Whether a backend has replaced nodes or given some back.
    rewritten: bool,
    /// The specs of everything that the nodes of the stage read and write.
    specs: IdMap<ValueId, TensorSpec>,
    /// Nodes that need a kernel or are views of something that does, in order.
    live: Vec<NodeId>,
    /// The value whose bytes a view shows, which is no view itself.
    view_of: IdMap<ValueId, ValueId>,
}

/// How often backends are offered what was placed on them.
const OFFERS: usize = 4;

/// Plans a stage up to its kernels. A backend whose memory does not hold its part is planned without, unless the
/// session is strict; `fallback` has what was refused before, and takes what is.
pub(super) fn draft(input: &StageInput, run: &Run<'_>, fallback: &mut Fallback) -> Result<Draft> {
    loop {
        match attempt(input, run, fallback.refused()) {
            Ok(draft) => return Ok(draft),
            Err(obstacle) => fallback.take(obstacle, input.nodes(), run.shared.options.strict)?,
        }
    }
}

fn attempt(input: &StageInput, run: &Run<'_>, refused: &Refused) -> Result<Draft, Obstacle> {
    let mut refused = refused.clone();
    let mut own: Option<(Graph, Stages)> = None;
    let mut offers = 0;
    loop {
        let (graph, stages) = match &own {
            Some((graph, stages)) => (graph, stages),
            None => (input.graph, input.stages),
        };
        let mut planner = Planner {
            specs: input.feeds.iter().cloned().collect(),
            input: StageInput {
                graph,
                stages,
                ..*input
            },
            refused: &refused,
            rewritten: offers > 0,
            live: Vec::new(),
            view_of: IdMap::default(),
        };
        planner.infer(run).map_err(Obstacle::of_all)?;
        planner.drop_dead();
        let (kernels, answers, placed) = planner.place(run).map_err(Obstacle::of_all)?;
        let rewritten = match offers < OFFERS {
            true => planner
                .offer(run.shared, &kernels, &placed.at)
                .map_err(Obstacle::of_all)?,
            false => Rewritten::default(),
        };
        if rewritten.is_empty() {
            return planner.lay_out(run.shared, &kernels, &answers, &placed);
        }
        offers += 1;
        refused.extend(rewritten.given_back);
        own = rewritten.graph.or(own);
    }
}

impl StageInput<'_> {
    /// The nodes of the stage.
    pub fn nodes(&self) -> &[NodeId] {
        &self.stages.stages[self.index].nodes
    }
}

impl Planner<'_> {
    fn spec(&self, v: ValueId) -> Result<&TensorSpec> {
        self.specs.get(&v).ok_or_else(|| {
            let name = &self.input.graph.value(v).name;
            let message = format!("the value `{name}` is used before it is there");
            Error::new(ErrorCode::InvalidGraph, message).with_hint(
                "a session that spares memory drops weights once they are packed: load it again",
            )
        })
    }

    fn inputs(&self, node: NodeId) -> Result<Vec<Option<TensorSpec>>> {
        self.input.graph.nodes[node.0]
            .inputs
            .iter()
            .map(|v| v.map(|v| self.spec(v).cloned()).transpose())
            .collect()
    }

    /// The inputs and outputs of a node, with their names, as backends are asked about them.
    fn asked(&self, node: NodeId) -> Result<(Vec<Option<TensorSpec>>, Vec<TensorSpec>)> {
        let graph = self.input.graph;
        let named = |v: ValueId| Ok(self.spec(v)?.clone().named(&graph.value(v).name));
        let node = &graph.nodes[node.0];
        let inputs = node.inputs.iter().map(|v| v.map(named).transpose());
        let outputs = node.outputs.iter().map(|&v| named(v));
        Ok((
            inputs.collect::<Result<_>>()?,
            outputs.collect::<Result<_>>()?,
        ))
    }

    /// The value that holds the bytes of `v`.
    fn root(&self, v: ValueId) -> ValueId {
        self.view_of.get(&v).copied().unwrap_or(v)
    }
}

/// What a plan was made for: shapes, and contents where planning looked at them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key(Vec<TensorSpec>);

impl Key {
    /// The key of a stage that is fed with these.
    pub fn of(feeds: &[(ValueId, TensorSpec)]) -> Key {
        Key(feeds.iter().map(|(_, s)| s.clone()).collect())
    }

    /// Makes it that of the same stage when it is fed with these.
    pub fn set(&mut self, feeds: &[(ValueId, TensorSpec)]) {
        let pairs = self.0.iter_mut().zip(feeds);
        pairs.for_each(|(own, (_, spec))| own.clone_from(spec));
    }

    /// Whether it is that of a stage that is fed with these.
    pub fn is(&self, feeds: &[(ValueId, TensorSpec)]) -> bool {
        self.0.iter().eq(feeds.iter().map(|(_, spec)| spec))
    }

    /// Whether some dimensions of these feeds are larger by one or by up to a quarter, and none is smaller.
    pub fn grows_to(&self, feeds: &[(ValueId, TensorSpec)]) -> bool {
        let pairs = || feeds.iter().map(|(_, spec)| spec).zip(&self.0);
        let little = |(new, old): (&usize, &usize)| {
            new == old || (new > old && new - old <= (old / 4).max(1))
        };
        let same_form = |(a, b): (&TensorSpec, &TensorSpec)| {
            a.dtype == b.dtype && a.shape.len() == b.shape.len()
        };
        pairs().all(same_form)
            && pairs().all(|(a, b)| a.shape.iter().zip(&b.shape).all(little))
            && pairs().any(|(a, b)| a.shape != b.shape)
    }

    /// How many inputs both have in common.
    pub fn shared_with(&self, feeds: &[(ValueId, TensorSpec)]) -> usize {
        let pairs = self.0.iter().zip(feeds);
        pairs.filter(|(own, (_, spec))| *own == spec).count()
    }
}
