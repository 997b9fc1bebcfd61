//! Runs a graph stage by stage: the model itself, and the bodies of control flow.

use std::collections::HashMap;

use super::plan::{self, Key, PlannedStage, StageInput};
use super::record::{RecordedInput, Recorder};
use super::{Handle, Shared};
use crate::backend::{LocalFuture, RawConstants, TensorSpec};
use crate::builtin::values::{self, Inputs};
use crate::builtin::{BUILTIN, control};
use crate::error::{Error, ErrorCode, Result};
use crate::graph::{Graph, NodeId, ValueId};
use crate::memory::Storage;
use crate::ops::{Fact, InferContext, InputFact};
use crate::report::{BackendReport, MemoryPlan, NodeReport, NodeTime, PortReport, Report};
use crate::stages::{self, Stages};

/// A graph with its stages, the plans made so far, and runners for the bodies it contains.
pub(crate) struct Runner {
    id: u64,
    graph: Graph,
    stages: Stages,
    /// For each stage, what it reads that is there before it.
    live_in: Vec<Vec<ValueId>>,
    /// For each stage, what others read of it.
    live_out: Vec<Vec<ValueId>>,
    /// Values whose contents control flow or planning looks at.
    host: Vec<bool>,
    bodies: HashMap<NodeId, Vec<Runner>>,
    /// For each stage, the latest plans, newest last.
    plans: Vec<Vec<(Key, PlannedStage)>>,
}

impl Runner {
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
                for v in control::host_inputs(node) {
                    host[v.0] = true;
                }
                let inner = node
                    .op
                    .subgraphs()
                    .into_iter()
                    .map(|g| Runner::new(g.clone(), shared))
                    .collect::<Result<Vec<_>>>()?;
                bodies.insert(id, inner);
            }
        }
        let (live_in, mut live_out) = live(&graph, &stages);
        if shared.options.keep_all {
            for (stage, out) in stages.stages.iter().zip(&mut live_out) {
                let nodes = stage.nodes.iter().map(|id| &graph.nodes[id.0]);
                *out = nodes.flat_map(|n| n.outputs.iter().copied()).collect();
            }
        }
        Ok(Runner {
            id: shared.runner_id(),
            plans: stages.stages.iter().map(|_| Vec::new()).collect(),
            graph,
            stages,
            live_in,
            live_out,
            host,
            bodies,
        })
    }

    /// Plans what can be planned before the first run: the first stage if its input shapes are
    /// known, and the bodies of control flow that follows it.
    ///
    /// Where raw constants are dropped, only one that is an output of the graph outlives this.
    pub fn prepare(
        &mut self,
        shared: &mut Shared,
        inputs: &[Fact],
        raw: RawConstants,
    ) -> Result<()> {
        let mut specs: HashMap<ValueId, TensorSpec> = HashMap::new();
        for (&v, fact) in self.graph.inputs.iter().zip(inputs) {
            if let (Some(dtype), Some(shape)) = (fact.dtype, fact.concrete())
                && fact.kind.is_tensor()
            {
                specs.insert(v, TensorSpec::new(dtype, &shape));
            }
        }
        let feeds: Option<Vec<_>> = self.live_in[0]
            .iter()
            .map(|v| specs.get(v).map(|s| (*v, s.clone())))
            .collect();
        let Some(feeds) = feeds else { return Ok(()) };
        if !self.stages.stages[0].materialise.is_empty() {
            return Ok(());
        }
        self.plan(0, feeds, shared, raw)?;
        let control = self.stages.stages[0].control.clone();
        for id in control {
            let node = self.graph.nodes[id.0].clone();
            let facts: Vec<Fact> = node
                .inputs
                .iter()
                .map(|v| v.map_or_else(Fact::default, |v| self.fact_after(0, v, &specs)))
                .collect();
            let facts = control::body_facts(&node, &facts);
            for body in self.bodies.entry(id).or_default() {
                // A branch that is never taken may not fit the shapes; a run that takes it says so.
                let _ = body.prepare(shared, &facts, RawConstants::Keep);
            }
        }
        Ok(())
    }

    /// Whether there is nothing to plan but the first stage, once, if the inputs have fixed shapes.
    pub fn plans_once(&self) -> bool {
        let [stage] = &self.stages.stages[..] else {
            return false;
        };
        let looked_at = |v: &ValueId| self.stages.known[v.0].is_some();
        stage.control.is_empty()
            && stage.materialise.is_empty()
            && !self.live_in[0].iter().any(looked_at)
    }

    /// The fact of a value after the first stage was planned.
    fn fact_after(&self, stage: usize, v: ValueId, inputs: &HashMap<ValueId, TensorSpec>) -> Fact {
        if let Some(s) = inputs.get(&v) {
            return Fact::fixed(s.dtype, &s.shape);
        }
        let name = &self.graph.value(v).name;
        let planned = self.plans[stage].last().and_then(|(_, p)| {
            let mut ports = p.report.iter().flat_map(|n| &n.outputs);
            ports.find(|o| o.name == *name)
        });
        match planned {
            Some(port) => match crate::DType::from_name(&port.dtype) {
                Some(d) => Fact::fixed(d, &port.shape),
                None => Fact::default(),
            },
            None => self.graph.value(v).fact.clone(),
        }
    }

    /// The plan of a stage for these inputs, made now if it is not kept.
    fn plan(
        &mut self,
        index: usize,
        feeds: Vec<(ValueId, TensorSpec)>,
        shared: &mut Shared,
        raw: RawConstants,
    ) -> Result<&mut PlannedStage> {
        let key = Key::of(&feeds);
        let plans = &mut self.plans[index];
        match plans.iter().position(|(k, _)| *k == key) {
            Some(i) if i + 1 == plans.len() => {}
            Some(i) => {
                let kept = plans.remove(i);
                plans.push(kept);
            }
            None => {
                let input = StageInput {
                    graph: &self.graph,
                    stages: &self.stages,
                    index,
                    live_out: &self.live_out[index],
                    runner: self.id,
                    feeds,
                };
                if !plans.is_empty() {
                    may_plan_again(shared)?;
                }
                let draft = plan::draft(input, shared)?;
                if raw == RawConstants::Drop {
                    for (i, value) in self.graph.values.iter_mut().enumerate() {
                        if !self.graph.outputs.contains(&ValueId(i)) {
                            value.constant = None;
                        }
                    }
                }
                while plans.len() >= shared.plans_kept() {
                    plans.remove(0);
                }
                let planned = shared.resize(raw, |shared| draft.generate(shared))?;
                plans.push((key, planned));
            }
        }
        plans
            .last_mut()
            .map(|(_, p)| p)
            .ok_or_else(|| Error::new(ErrorCode::State, "a plan was dropped while it was needed"))
    }

    /// Runs the graph. `host[i]` says that the caller will look at output `i` on the host.
    pub fn run<'a>(
        &'a mut self,
        shared: &'a mut Shared,
        inputs: Vec<Handle>,
        host: &'a [bool],
    ) -> LocalFuture<'a, Result<Vec<Handle>>> {
        Box::pin(async move {
            let mut env: Vec<Option<Handle>> = vec![None; self.graph.values.len()];
            let mut on_host = self.host.clone();
            if shared.recorder.is_some() {
                on_host.fill(true);
            }
            for (&v, &h) in self.graph.outputs.iter().zip(host) {
                on_host[v.0] |= h;
            }
            for (&v, handle) in self.graph.inputs.iter().zip(inputs) {
                env[v.0] = Some(handle);
            }
            for index in 0..self.stages.stages.len() {
                let feeds = self.feeds(index, &mut env, shared).await?;
                self.plan(index, feeds, shared, RawConstants::Keep)?
                    .run(&mut env, &on_host, shared)
                    .await?;
                if shared.recorder.is_some() {
                    self.record(index, &env, shared).await?;
                }
                for k in 0..self.stages.stages[index].control.len() {
                    let id = self.stages.stages[index].control[k];
                    self.control(id, &mut env, &on_host, shared).await?;
                }
            }
            let mut outputs = Vec::with_capacity(self.graph.outputs.len());
            for &v in &self.graph.outputs {
                outputs.push(self.value(v, &env)?);
            }
            Ok(outputs)
        })
    }

    /// Shows the nodes of a stage that has run to the recorder.
    async fn record(
        &self,
        index: usize,
        env: &[Option<Handle>],
        shared: &mut Shared,
    ) -> Result<()> {
        for &id in &self.stages.stages[index].nodes {
            let new = |r: &mut Recorder| r.is_new(self.id, id);
            if !shared.recorder.as_mut().is_some_and(new) {
                continue;
            }
            let node = &self.graph.nodes[id.0];
            let mut inputs = Vec::with_capacity(node.inputs.len());
            for v in &node.inputs {
                inputs.push(match v {
                    Some(v) => Some(RecordedInput {
                        tensor: self.value(*v, env)?.into_host(shared).await?,
                        constant: self.graph.value(*v).constant.is_some(),
                    }),
                    None => None,
                });
            }
            let mut outputs = Vec::with_capacity(node.outputs.len());
            for &v in &node.outputs {
                outputs.push(self.value(v, env)?.into_host(shared).await?);
            }
            if let Some(recorder) = &mut shared.recorder {
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
        shared: &mut Shared,
    ) -> Result<Vec<(ValueId, TensorSpec)>> {
        let mut feeds = Vec::with_capacity(self.live_in[index].len());
        for &v in &self.live_in[index] {
            let handle = self.value(v, env)?;
            let known = self.stages.known[v.0].is_some_and(|k| k <= index);
            let spec = if known {
                let tensor = handle.into_host(shared).await?;
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
        shared: &mut Shared,
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
        if let Some(recorder) = &mut shared.recorder {
            recorder.scope.push(node.name.clone());
        }
        let outputs = match values::of(node.op.as_ref()) {
            Some(op) => op.run(Inputs(inputs), shared).await.map(|y| vec![y]),
            None => {
                let bodies = self.bodies.entry(id).or_default();
                control::run(&node, bodies, inputs, &host, shared).await
            }
        };
        if let Some(recorder) = &mut shared.recorder {
            recorder.scope.pop();
        }
        let outputs = outputs.map_err(|e| e.at(&node.name, node.op.name()))?;
        for (v, handle) in node.outputs.iter().zip(outputs) {
            env[v.0] = Some(handle);
        }
        Ok(())
    }

    /// The facts of the graph's outputs for inputs like these.
    pub fn output_facts(&self, inputs: &[Fact]) -> Vec<Fact> {
        let mut facts: HashMap<ValueId, Fact> = self
            .graph
            .inputs
            .iter()
            .copied()
            .zip(inputs.iter().cloned())
            .collect();
        for node in &self.graph.nodes {
            let known: Vec<Option<InputFact>> = node
                .inputs
                .iter()
                .map(|v| {
                    v.map(|v| {
                        let value = self.graph.value(v);
                        InputFact {
                            fact: facts.get(&v).unwrap_or(&value.fact).clone(),
                            value: value.constant.clone(),
                        }
                    })
                })
                .collect();
            let ctx = InferContext {
                inputs: &known,
                outputs: node.outputs.len(),
            };
            if let Ok(out) = node.op.infer(&ctx) {
                facts.extend(node.outputs.iter().copied().zip(out));
            }
        }
        let fact = |v: &ValueId| facts.get(v).unwrap_or(&self.graph.value(*v).fact).clone();
        self.graph.outputs.iter().map(fact).collect()
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Another runner of the same graph, with those plans that can be shared.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn replica(&self, shared: &mut Shared) -> Result<Runner> {
        let mut replica = Runner::new(self.graph.clone(), shared)?;
        shared.resize(RawConstants::Keep, |shared| {
            for (own, plans) in replica.plans.iter_mut().zip(&self.plans) {
                let share =
                    |(key, plan): &(Key, PlannedStage)| Some((key.clone(), plan.replica(shared)?));
                own.extend(plans.iter().filter_map(share));
            }
            Ok(())
        })?;
        Ok(replica)
    }

    /// Drops all plans: they are made anew when they are needed.
    pub fn forget_plans(&mut self) {
        self.plans.iter_mut().for_each(Vec::clear);
        let bodies = self.bodies.values_mut().flatten();
        bodies.for_each(Runner::forget_plans);
    }

    /// Forgets the times of earlier runs.
    pub fn clear_times(&mut self) {
        for (_, planned) in self.plans.iter_mut().flatten() {
            planned.times.clear();
        }
        for body in self.bodies.values_mut().flatten() {
            body.clear_times();
        }
    }

    /// The times of the last profiled run, bodies included.
    pub fn collect_times(
        &self,
        shared: &Shared,
        scope: &mut Vec<String>,
        times: &mut Vec<NodeTime>,
    ) {
        for (index, plans) in self.plans.iter().enumerate() {
            for (_, planned) in plans {
                for placed in &planned.nodes {
                    let measured = planned.times.get(placed.backend);
                    let Some(&seconds) = measured.and_then(|t| t.get(placed.kernel)) else {
                        continue;
                    };
                    times.push(NodeTime {
                        name: placed.name.clone(),
                        op: placed.op.clone(),
                        backend: shared.backends[placed.backend].describe().id.to_string(),
                        scope: scope.clone(),
                        seconds,
                    });
                }
            }
            for id in &self.stages.stages[index].control {
                scope.push(self.graph.nodes[id.0].name.clone());
                for body in self.bodies.get(id).into_iter().flatten() {
                    body.collect_times(shared, scope, times);
                }
                scope.pop();
            }
        }
    }

    pub fn report(&self, shared: &Shared) -> Report {
        let calibration = &shared.options.calibration;
        let mut report = Report {
            backends: shared
                .backends
                .iter()
                .zip(&shared.contexts)
                .map(|(b, c)| BackendReport {
                    id: b.describe().id.to_string(),
                    device: b.describe().device.clone(),
                    calibrated: calibration.speed(b.describe()).is_some(),
                    constant_bytes: c.constant_bytes(),
                    planned_bytes: c.arena().bytes() + c.ledger().bytes(Storage::DynamicSeparate),
                    arena_bytes: c.arena().bytes(),
                    arena_owner: c.arena().owner().to_string(),
                    ..BackendReport::default()
                })
                .collect(),
            ..Report::default()
        };
        self.add_to_report(&[], &mut report);
        let mut buffers = HashMap::new();
        self.buffers(&mut buffers);
        report.graph_bytes = buffers.values().sum();
        report
    }

    /// The buffers on the host that constants are in, by address, with their sizes.
    fn buffers(&self, buffers: &mut HashMap<usize, usize>) {
        let constants = self.graph.values.iter().filter_map(|v| v.constant.as_ref());
        buffers.extend(constants.map(|t| t.buffer()));
        for body in self.bodies.values().flatten() {
            body.buffers(buffers);
        }
    }

    fn add_to_report(&self, scope: &[String], report: &mut Report) {
        for (index, plans) in self.plans.iter().enumerate() {
            match plans.last() {
                Some((_, planned)) => {
                    for (b, e) in planned.executables.iter().enumerate() {
                        let entry = &mut report.backends[b];
                        if let Some(e) = e {
                            entry.launches += e.launches();
                        }
                    }
                    for (b, plan) in &planned.memory {
                        let entry = &mut report.backends[*b];
                        entry.unshared_bytes += plan.unshared_bytes;
                        entry.lower_bound_bytes =
                            entry.lower_bound_bytes.max(plan.lower_bound_bytes);
                        report.memory.push(MemoryPlan {
                            scope: scope.to_vec(),
                            stage: index,
                            ..plan.clone()
                        });
                    }
                    report.crossings.extend(planned.crossings.iter().cloned());
                    report
                        .nodes
                        .extend(planned.report.iter().cloned().map(|mut n| {
                            n.scope = scope.to_vec();
                            n
                        }));
                }
                None => report.unplanned_stages += 1,
            }
            for id in &self.stages.stages[index].control {
                let node = &self.graph.nodes[id.0];
                report.nodes.push(NodeReport {
                    name: node.name.clone(),
                    op: node.op.name().to_string(),
                    backend: BUILTIN.to_string(),
                    scope: scope.to_vec(),
                    stage: index,
                    inputs: node
                        .present_inputs()
                        .map(|v| self.graph.value(v).name.clone())
                        .collect(),
                    outputs: node
                        .outputs
                        .iter()
                        .map(|&v| PortReport {
                            name: self.graph.value(v).name.clone(),
                            ..PortReport::default()
                        })
                        .collect(),
                    refusals: Vec::new(),
                    moved: None,
                });
                let mut inner = scope.to_vec();
                inner.push(node.name.clone());
                for body in self.bodies.get(id).into_iter().flatten() {
                    body.add_to_report(&inner, report);
                }
            }
        }
    }
}

/// `State` where a backend plans a session only once.
fn may_plan_again(shared: &Shared) -> Result<()> {
    let mut backends = shared.backends.iter().zip(&shared.configs);
    match backends.find(|(_, config)| !config.dynamic_tensors) {
        Some((backend, _)) => Err(Error::new(
            ErrorCode::State,
            format!(
                "the backend `{}` does not take inputs of other shapes",
                backend.describe().id
            ),
        )
        .with_hint("load the model once for each shape")),
        None => Ok(()),
    }
}

/// For each stage, what it reads that others made, and what of it others read.
fn live(graph: &Graph, stages: &Stages) -> (Vec<Vec<ValueId>>, Vec<Vec<ValueId>>) {
    let count = stages.stages.len();
    let mut made_in = vec![None; graph.values.len()];
    for (s, stage) in stages.stages.iter().enumerate() {
        for id in &stage.nodes {
            for out in &graph.nodes[id.0].outputs {
                made_in[out.0] = Some(s);
            }
        }
    }
    let mut live_in = vec![Vec::new(); count];
    let mut live_out = vec![Vec::new(); count];
    let constant = |v: ValueId| graph.value(v).constant.is_some();
    let leaves = |v: ValueId, live_out: &mut Vec<Vec<ValueId>>| {
        if let Some(s) = made_in[v.0]
            && !live_out[s].contains(&v)
        {
            live_out[s].push(v);
        }
    };
    for (s, stage) in stages.stages.iter().enumerate() {
        for id in &stage.nodes {
            for v in graph.nodes[id.0].present_inputs() {
                if made_in[v.0] != Some(s) && !constant(v) {
                    if !live_in[s].contains(&v) {
                        live_in[s].push(v);
                    }
                    leaves(v, &mut live_out);
                }
            }
        }
        for id in &stage.control {
            for v in graph.nodes[id.0].present_inputs() {
                leaves(v, &mut live_out);
            }
        }
    }
    for &v in &graph.outputs {
        leaves(v, &mut live_out);
    }
    (live_in, live_out)
}
