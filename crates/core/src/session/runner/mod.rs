//! Runs a graph stage by stage: the model itself, and the bodies of control flow.

mod asked;
mod first;
mod live;
mod planning;
mod report;

use std::collections::HashMap;
use std::sync::Arc;

use super::builtin::control;
use super::builtin::values::{self, Inputs};
#[cfg(not(target_arch = "wasm32"))]
use super::plan::Obstacle;
use super::plan::{Key, PlannedStage};
use super::record::{RecordedInput, Recorder};
use super::{Handle, Run, Shared};
use crate::backend::RawConstants;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::TensorSpec;
use crate::graph::{Graph, NodeId, ValueId};
use crate::ids::IdSet;
#[cfg(not(target_arch = "wasm32"))]
use crate::interrupt::Interrupt;
use crate::pin;
use crate::stages::{self, Stages};
use crate::threading::LocalFuture;

pub(super) use asked::{Needed, SETS};

/// A graph with its stages, the plans made so far, and runners for the bodies it contains.
pub(crate) struct Runner {
    id: u64,
    graph: Graph,
    stages: Stages,
    /// For each stage, what it reads that is there before it.
    live_in: Vec<Vec<ValueId>>,
    /// For each stage, what others read of it.
    live_out: Vec<Vec<ValueId>>,
    /// For each stage, what it is the last to read.
    spent: Vec<Vec<ValueId>>,
    /// Values whose contents control flow or planning looks at.
    host: Vec<bool>,
    bodies: HashMap<NodeId, Vec<Runner>>,
    /// What the latest runs of some outputs needed.
    needed: Vec<Arc<Needed>>,
    /// For each stage, the latest plans, newest last.
    plans: Vec<Vec<(Key, PlannedStage)>>,
    /// For each stage, nodes that are left to kernels: see [`super::plan::StageInput::lively`].
    lively: Vec<IdSet<NodeId>>,
}

impl Runner {
    /// Cuts the graph and those of its control flow into stages; errors as of [`stages::split`].
    pub fn new(graph: Graph, shared: &mut Shared) -> Result<Runner> {
        let stages = stages::split(&graph)?;
        let mut bodies = HashMap::new();
        let mut host = vec![false; graph.values.len()];
        for stage in &stages.stages {
            for v in &stage.materialise {
                host[v.0] = true;
            }
            for &id in &stage.control {
                let node = &graph.nodes[id.0];
                pin::leave_control(&shared.options.pins, &node.name, node.op.name())?;
                let Some(inner) = node.op.bodies() else {
                    continue;
                };
                let on_host = inner.on_host(node.inputs.len());
                for v in on_host.filter_map(|i| node.input(i)) {
                    host[v.0] = true;
                }
                let inner = (inner.graphs.into_iter())
                    .map(|g| Runner::new(Graph::clone(g), shared))
                    .collect::<Result<Vec<_>>>()?;
                bodies.insert(id, inner);
            }
        }
        let (live_in, mut live_out) = live::between(&graph, &stages);
        let spent = live::spent(&graph, &stages, &live_in);
        if shared.options.keep_all {
            for (stage, out) in stages.stages.iter().zip(&mut live_out) {
                let nodes = stage.nodes.iter().map(|id| &graph.nodes[id.0]);
                *out = nodes.flat_map(|n| n.outputs.iter().copied()).collect();
            }
        }
        Ok(Runner {
            id: shared.runner_id(),
            plans: stages.stages.iter().map(|_| Vec::new()).collect(),
            lively: vec![IdSet::default(); stages.stages.len()],
            graph,
            stages,
            live_in,
            live_out,
            spent,
            host,
            bodies,
            needed: Vec::new(),
        })
    }

    /// Runs the graph. `host[i]` says that the caller will look at output `i` on the host. Of outputs that [`Run::asked`] leaves out,
    /// those that nothing else needs are absent.
    pub fn run<'a>(
        &'a mut self,
        run: &'a mut Run<'_>,
        inputs: Vec<Handle>,
        host: &'a [bool],
    ) -> LocalFuture<'a, Result<Vec<Handle>>> {
        Box::pin(async move {
            let mut env: Vec<Option<Handle>> = vec![None; self.graph.values.len()];
            let mut on_host = self.host.clone();
            if run.recorder.is_some() {
                on_host.fill(true);
            }
            for (&v, &h) in self.graph.outputs.iter().zip(host) {
                on_host[v.0] |= h;
            }
            for (&v, handle) in self.graph.inputs.iter().zip(inputs) {
                env[v.0] = Some(handle);
            }
            let needed = run.asked.take().map(|asked| self.needed(&asked));
            let needs = |values: &[ValueId]| needed.as_ref().is_none_or(|n| n.any(values));
            for index in 0..self.stages.stages.len() {
                run.interrupt.check()?;
                if needs(&self.live_out[index]) {
                    let feeds = self.feeds(index, &mut env).await?;
                    self.tune(index, &feeds, run).await?;
                    // A recorder looks at inputs behind the stage.
                    let spent = match run.recorder {
                        None => self.spent[index].clone(),
                        Some(_) => Vec::new(),
                    };
                    self.plan(index, &feeds, run, RawConstants::Keep)?
                        .run(&mut env, &spent, &on_host, needed.as_ref(), run)
                        .await?;
                } else {
                    self.forget_times(index);
                }
                if run.recorder.is_some() {
                    self.record(index, &env, run).await?;
                }
                for k in 0..self.stages.stages[index].control.len() {
                    let id = self.stages.stages[index].control[k];
                    if needs(&self.graph.nodes[id.0].outputs) {
                        self.control(id, &mut env, &on_host, run).await?;
                    } else {
                        let bodies = self.bodies.get_mut(&id).into_iter().flatten();
                        bodies.for_each(Runner::clear_times);
                    }
                }
            }
            let mut outputs = Vec::with_capacity(self.graph.outputs.len());
            for v in &self.graph.outputs {
                outputs.push(match needs(std::slice::from_ref(v)) {
                    true => self.value(*v, &env)?,
                    false => Handle::Absent,
                });
            }
            Ok(outputs)
        })
    }

    /// Shows the nodes of a stage that has run to the recorder.
    async fn record(&self, index: usize, env: &[Option<Handle>], run: &mut Run<'_>) -> Result<()> {
        for &id in &self.stages.stages[index].nodes {
            let new = |r: &mut Recorder| r.is_new(self.id, id);
            if !run.recorder.as_mut().is_some_and(new) {
                continue;
            }
            let node = &self.graph.nodes[id.0];
            let mut inputs = Vec::with_capacity(node.inputs.len());
            for v in &node.inputs {
                inputs.push(match v {
                    Some(v) => Some(RecordedInput {
                        tensor: self.value(*v, env)?.into_host().await?,
                        constant: self.graph.value(*v).constant.is_some(),
                    }),
                    None => None,
                });
            }
            let mut outputs = Vec::with_capacity(node.outputs.len());
            for &v in &node.outputs {
                outputs.push(self.value(v, env)?.into_host().await?);
            }
            if let Some(recorder) = &mut run.recorder {
                recorder.push(id, node, inputs, outputs);
            }
        }
        Ok(())
    }

    fn value(&self, v: ValueId, env: &[Option<Handle>]) -> Result<Handle> {
        if let Some(handle) = &env[v.0] {
            return Ok(handle.clone());
        }
        match &self.graph.value(v).constant {
            Some(t) => Ok(Handle::Host(t.clone())),
            None => Err(Error::new(
                ErrorCode::State,
                format!("the value `{}` was not computed", self.graph.value(v).name),
            )),
        }
    }

    /// The specs of what a stage reads, with contents where planning may look at them.
    async fn feeds(
        &self,
        index: usize,
        env: &mut [Option<Handle>],
    ) -> Result<Vec<(ValueId, TensorSpec)>> {
        let mut feeds = Vec::with_capacity(self.live_in[index].len());
        for &v in &self.live_in[index] {
            let handle = self.value(v, env)?;
            let known = self.stages.known[v.0].is_some_and(|k| k <= index);
            let spec = if known {
                let tensor = handle.into_host().await?;
                env[v.0] = Some(Handle::Host(tensor.clone()));
                TensorSpec::of(&tensor)
            } else {
                handle.spec()?
            };
            feeds.push((v, spec));
        }
        Ok(feeds)
    }

    async fn control(
        &mut self,
        id: NodeId,
        env: &mut [Option<Handle>],
        on_host: &[bool],
        run: &mut Run<'_>,
    ) -> Result<()> {
        let node = self.graph.nodes[id.0].clone();
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for v in &node.inputs {
            inputs.push(match v {
                Some(v) => Some(self.value(*v, env)?),
                None => None,
            });
        }
        let host: Vec<bool> = node.outputs.iter().map(|v| on_host[v.0]).collect();
        if let Some(recorder) = &mut run.recorder {
            recorder.scope.push(node.name.clone());
        }
        // Bodies have values of their own.
        #[cfg(not(target_arch = "wasm32"))]
        let memory = std::mem::take(&mut run.memory);
        let outputs = match values::of(node.op.as_ref()) {
            Some(op) => op.run(Inputs(inputs), run).await.map(|y| vec![y]),
            None => {
                let bodies = self.bodies.entry(id).or_default();
                control::run(&node, bodies, inputs, &host, run).await
            }
        };
        #[cfg(not(target_arch = "wasm32"))]
        {
            run.memory = memory;
        }
        if let Some(recorder) = &mut run.recorder {
            recorder.scope.pop();
        }
        let outputs = outputs.map_err(|e| e.at(&node.name, node.op.name()))?;
        for (v, handle) in node.outputs.iter().zip(outputs) {
            env[v.0] = Some(handle);
        }
        Ok(())
    }

    /// The graph as it was cut into stages.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Another runner of this graph, with those plans that can be shared.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn replica(&self, shared: &mut Shared) -> Result<Runner> {
        let mut replica = self.unplanned();
        let shared = Run::new(shared, Interrupt::NEVER).resize(RawConstants::Keep, |run| {
            for (own, plans) in replica.plans.iter_mut().zip(&self.plans) {
                let share = |(key, plan): &(Key, PlannedStage)| {
                    Some((key.clone(), plan.replica(run.shared)?))
                };
                own.extend(plans.iter().filter_map(share));
            }
            Ok(())
        });
        shared.map_err(Obstacle::error)?;
        Ok(replica)
    }

    /// A runner of the graph in these stages, without plans. A graph whose raw constants were dropped could
    /// not be cut again.
    #[cfg(not(target_arch = "wasm32"))]
    fn unplanned(&self) -> Runner {
        let inner = |bodies: &Vec<Runner>| bodies.iter().map(Runner::unplanned).collect();
        Runner {
            id: self.id,
            graph: self.graph.clone(),
            stages: self.stages.clone(),
            live_in: self.live_in.clone(),
            live_out: self.live_out.clone(),
            spent: self.spent.clone(),
            host: self.host.clone(),
            bodies: self.bodies.iter().map(|(id, b)| (*id, inner(b))).collect(),
            needed: Vec::new(),
            plans: self.plans.iter().map(|_| Vec::new()).collect(),
            lively: self.lively.clone(),
        }
    }

    /// Whether the first stage has a plan.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn has_plan(&self) -> bool {
        !self.plans[0].is_empty()
    }

    /// Drops all plans: they are made anew when they are needed.
    pub fn forget_plans(&mut self) {
        self.plans.iter_mut().for_each(Vec::clear);
        let bodies = self.bodies.values_mut().flatten();
        bodies.for_each(Runner::forget_plans);
    }
}
