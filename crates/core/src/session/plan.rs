//! Plans one stage for concrete input shapes: infers shapes, computes what is known already, places
//! nodes, orders them into parts, finds crossings, and has every backend make its kernels.

use std::collections::{BTreeSet, HashMap};

use super::{Handle, Shared};
use crate::backend::{
    BackendId, ConstantKey, Executable, KernelSpec, Memory, NodeSpec, Place, Refusal, StageSpec,
    TensorSlot, TensorSpec,
};
use crate::error::{Error, ErrorCode, Result};
use crate::graph::{Graph, NodeId, ValueId};
use crate::memory::{self, Request};
use crate::ops::{InferContext, InputFact, ShapeOf, Size};
use crate::partition::{self, Candidate};
use crate::report::{CrossingReport, NodeReport, PortReport, RefusalReport};
use crate::schedule::Step;
use crate::stages::Stages;
use crate::tensor::{Tensor, byte_count};

/// Known values up to this size are computed while planning even if no shape depends on them: it
/// is cheaper than a kernel.
const SMALL: usize = 1024;

/// One stage of a graph, with what it reads from and gives to the others.
pub(super) struct StageInput<'a> {
    pub graph: &'a Graph,
    pub stages: &'a Stages,
    pub index: usize,
    pub live_out: &'a [ValueId],
    pub runner: u64,
    /// What is there when the stage starts, with contents where planning may use them.
    pub feeds: Vec<(ValueId, TensorSpec)>,
}

/// Where a value that leaves a stage comes from.
pub(super) enum Source {
    /// An input of the stage, perhaps under another shape.
    Feed(ValueId, Vec<usize>),
    /// Computed while planning.
    Known(Tensor),
    /// A tensor of a backend.
    Tensor { backend: usize, tensor: usize },
}

/// A node with a kernel.
pub(super) struct PlacedNode {
    pub id: NodeId,
    pub backend: usize,
    /// The index in the backend's [`StageSpec::nodes`].
    pub kernel: usize,
}

/// A stage that can run.
pub(super) struct PlannedStage {
    pub executables: Vec<Option<Box<dyn Executable>>>,
    pub steps: Vec<Step>,
    /// For each input of the stage, the tensors that take it: backend and tensor.
    pub feeds: Vec<(ValueId, Vec<(usize, usize)>)>,
    pub results: Vec<(ValueId, Source)>,
    pub nodes: Vec<PlacedNode>,
    pub report: Vec<NodeReport>,
    pub crossings: Vec<CrossingReport>,
    /// Per backend: the sum of all intermediates, and the largest sum alive at one step.
    pub unshared: Vec<(usize, usize)>,
    pub times: Vec<Vec<f64>>,
}

/// A placed node's answers from the backends, in the order of preference.
type Answers = Vec<Result<crate::ops::Cost, Refusal>>;

struct Planner<'a> {
    input: StageInput<'a>,
    specs: HashMap<ValueId, TensorSpec>,
    /// Nodes that need a kernel or are views of something that does, in order.
    live: Vec<NodeId>,
    /// The value whose bytes a view shows.
    view_of: HashMap<ValueId, ValueId>,
}

pub(super) fn build(input: StageInput, shared: &mut Shared) -> Result<PlannedStage> {
    let mut planner = Planner {
        specs: input.feeds.iter().cloned().collect(),
        input,
        live: Vec::new(),
        view_of: HashMap::new(),
    };
    planner.infer(shared)?;
    planner.drop_dead();
    let (kernels, answers, at) = planner.place(shared)?;
    planner.lay_out(shared, &kernels, &answers, &at)
}

impl Planner<'_> {
    fn spec(&self, v: ValueId) -> Result<TensorSpec> {
        if let Some(s) = self.specs.get(&v) {
            return Ok(s.clone());
        }
        match &self.input.graph.value(v).constant {
            Some(t) => Ok(TensorSpec::of(t)),
            None => Err(Error::new(
                ErrorCode::InvalidGraph,
                format!(
                    "the value `{}` is used before it is there",
                    self.input.graph.value(v).name
                ),
            )),
        }
    }

    fn inputs(&self, node: NodeId) -> Result<Vec<Option<TensorSpec>>> {
        self.input.graph.nodes[node.0]
            .inputs
            .iter()
            .map(|v| v.map(|v| self.spec(v)).transpose())
            .collect()
    }

    /// Gives every output of the stage's nodes a spec, and a value where it can be computed now.
    fn infer(&mut self, shared: &Shared) -> Result<()> {
        let graph = self.input.graph;
        for &id in &self.input.stages.stages[self.input.index].nodes {
            let node = &graph.nodes[id.0];
            let at = |e: Error| e.at(&node.name, node.op.name());
            let inputs = self.inputs(id)?;
            let mut outputs = infer_concrete(node, &inputs, shared).map_err(at)?;
            let known = self
                .known_outputs(id, &inputs, &outputs, shared)
                .map_err(at)?;
            if let Some(values) = known {
                for (spec, value) in outputs.iter_mut().zip(values) {
                    *spec = TensorSpec::of(&value);
                }
            } else {
                if node.op.is_view()
                    && let Some(of) = node.input(0)
                {
                    self.view_of.insert(node.outputs[0], of);
                }
                self.live.push(id);
            }
            for (v, spec) in node.outputs.iter().zip(outputs) {
                self.specs.insert(*v, spec);
            }
        }
        Ok(())
    }

    fn known_outputs(
        &self,
        id: NodeId,
        inputs: &[Option<TensorSpec>],
        outputs: &[TensorSpec],
        shared: &Shared,
    ) -> Result<Option<Vec<Tensor>>> {
        let node = &self.input.graph.nodes[id.0];
        let op = node.op.as_ref();
        if let Some(first) = inputs.first().and_then(Option::as_ref)
            && let Some(t) = from_shape(op, &first.shape)?
        {
            return Ok(Some(vec![t]));
        }
        let all_known = inputs.iter().flatten().all(|s| s.value.is_some());
        if !all_known || !op.deterministic() {
            return Ok(None);
        }
        if op.is_view() {
            let value = inputs.first().and_then(|s| s.as_ref()?.value.clone());
            return value
                .map(|v| Ok(vec![v.reshaped(&outputs[0].shape)?]))
                .transpose();
        }
        let wanted = node.outputs.iter().any(|o| self.input.stages.wanted[o.0]);
        let small = outputs.iter().map(TensorSpec::bytes).sum::<usize>() <= SMALL;
        if !wanted && !small {
            return Ok(None);
        }
        let spec = NodeSpec {
            name: &node.name,
            op,
            inputs,
            outputs,
        };
        shared.evaluate(&spec).transpose()
    }

    /// Forgets nodes whose results nothing needs any more.
    fn drop_dead(&mut self) {
        let mut needed: BTreeSet<ValueId> = self.input.live_out.iter().copied().collect();
        let mut live = Vec::with_capacity(self.live.len());
        for &id in self.live.iter().rev() {
            let node = &self.input.graph.nodes[id.0];
            if node.outputs.iter().any(|o| needed.contains(o)) {
                needed.extend(node.present_inputs());
                live.push(id);
            }
        }
        live.reverse();
        self.live = live;
    }

    /// The value that holds the bytes of `v`.
    fn root(&self, v: ValueId) -> ValueId {
        let mut v = v;
        while let Some(&of) = self.view_of.get(&v) {
            v = of;
        }
        v
    }

    /// Asks every backend about every node that needs a kernel, and places them.
    fn place(&self, shared: &Shared) -> Result<(Vec<NodeId>, Vec<Answers>, Vec<usize>)> {
        let graph = self.input.graph;
        let is_view = |id: NodeId| {
            let outs = &graph.nodes[id.0].outputs;
            outs.first().is_some_and(|o| self.view_of.contains_key(o))
        };
        let kernels: Vec<NodeId> = self.live.iter().copied().filter(|&n| !is_view(n)).collect();
        let descriptions: Vec<_> = shared.backends.iter().map(|b| b.describe()).collect();
        let mut index: HashMap<ValueId, usize> = HashMap::new();
        let mut bytes = Vec::new();
        let mut candidates = Vec::with_capacity(kernels.len());
        for &id in &kernels {
            let node = &graph.nodes[id.0];
            let inputs = self.inputs(id)?;
            let outputs: Vec<TensorSpec> = node
                .outputs
                .iter()
                .map(|&v| self.spec(v))
                .collect::<Result<_>>()?;
            let spec = NodeSpec {
                name: &node.name,
                op: node.op.as_ref(),
                inputs: &inputs,
                outputs: &outputs,
            };
            let answers = shared.backends.iter().map(|b| b.supports(&spec)).collect();
            let mut number = |v: ValueId, spec: &TensorSpec| {
                *index.entry(self.root(v)).or_insert_with(|| {
                    bytes.push(spec.bytes());
                    bytes.len() - 1
                })
            };
            let mut candidate = Candidate {
                answers,
                ..Candidate::default()
            };
            for (v, s) in node.inputs.iter().zip(&inputs) {
                if let (Some(v), Some(s)) = (v, s)
                    && s.value.is_none()
                {
                    candidate.reads.push(number(*v, s));
                }
            }
            for (v, s) in node.outputs.iter().zip(&outputs) {
                candidate.writes.push(number(*v, s));
            }
            candidates.push(candidate);
        }
        let placement = shared.options.placement;
        let ids: Vec<BackendId> = descriptions.iter().map(|d| d.id.clone()).collect();
        let refused = |which: Vec<usize>, why: &str| {
            let lines: Vec<String> = which
                .iter()
                .map(|&i| {
                    let node = &graph.nodes[kernels[i].0];
                    let reasons = partition::reasons(&candidates[i], &ids);
                    format!("{} `{}` ({reasons})", node.op.name(), node.name)
                })
                .collect();
            Error::new(ErrorCode::NoBackend, format!("{why}: {}", lines.join(", ")))
        };
        let at = partition::place(&candidates, &bytes, &descriptions, placement)
            .map_err(|homeless| refused(homeless, "no backend of the session runs"))?;
        if shared.options.strict {
            let fallen: Vec<usize> = (0..kernels.len())
                .filter(|&i| candidates[i].answers[0].is_err())
                .collect();
            if !fallen.is_empty() {
                return Err(refused(fallen, "the preferred backend does not run"));
            }
        }
        let answers = candidates.into_iter().map(|c| c.answers).collect();
        Ok((kernels, answers, at))
    }

    /// Orders kernels into parts, each as long as it can be before another backend has to work.
    fn order(&self, kernels: &[NodeId], at: &[usize], backends: usize) -> Vec<usize> {
        let graph = self.input.graph;
        let mut writer: HashMap<ValueId, usize> = HashMap::new();
        for (i, id) in kernels.iter().enumerate() {
            for &v in &graph.nodes[id.0].outputs {
                writer.insert(v, i);
            }
        }
        let mut waiting = vec![0usize; kernels.len()];
        let mut readers = vec![Vec::new(); kernels.len()];
        for (i, id) in kernels.iter().enumerate() {
            for v in graph.nodes[id.0].present_inputs() {
                if let Some(&w) = writer.get(&self.root(v)) {
                    waiting[i] += 1;
                    readers[w].push(i);
                }
            }
        }
        let mut ready = vec![BTreeSet::new(); backends];
        for i in 0..kernels.len() {
            if waiting[i] == 0 {
                ready[at[i]].insert(i);
            }
        }
        let mut order = Vec::with_capacity(kernels.len());
        let mut current = 0;
        while order.len() < kernels.len() {
            let Some(i) = ready[current].pop_first() else {
                let first = (0..backends).filter_map(|b| ready[b].first().map(|&i| (i, b)));
                match first.min() {
                    Some((_, b)) => current = b,
                    None => break,
                }
                continue;
            };
            order.push(i);
            for &r in &readers[i] {
                waiting[r] -= 1;
                if waiting[r] == 0 {
                    ready[at[r]].insert(r);
                }
            }
        }
        order
    }

    fn lay_out(
        self,
        shared: &mut Shared,
        kernels: &[NodeId],
        answers: &[Answers],
        at: &[usize],
    ) -> Result<PlannedStage> {
        let count = shared.backends.len();
        let order = self.order(kernels, at, count);
        let mut table = Table {
            planner: &self,
            device: shared
                .backends
                .iter()
                .map(|b| b.describe().memory == Memory::Device)
                .collect(),
            stages: vec![StageSpec::default(); count],
            of: vec![HashMap::new(); count],
            lives: vec![Vec::new(); count],
            home: HashMap::new(),
            feeds: HashMap::new(),
            crossings: Vec::new(),
        };
        for (k, &i) in order.iter().enumerate() {
            for &v in &self.input.graph.nodes[kernels[i].0].outputs {
                table.home.insert(v, (at[i], k));
            }
        }
        let mut steps = Vec::new();
        let mut nodes = Vec::new();
        let mut k = 0;
        while k < order.len() {
            let backend = at[order[k]];
            let end = (k..order.len())
                .find(|&j| at[order[j]] != backend)
                .unwrap_or(order.len());
            let start = table.stages[backend].nodes.len();
            for (time, &i) in order.iter().enumerate().take(end).skip(k) {
                let kernel = table.kernel(backend, kernels[i], time, k)?;
                nodes.push(PlacedNode {
                    id: kernels[i],
                    backend,
                    kernel,
                });
            }
            steps.append(&mut table.take_crossings());
            let stage = &mut table.stages[backend];
            stage.parts.push(start..stage.nodes.len());
            steps.push(Step::Part {
                backend,
                part: stage.parts.len() - 1,
            });
            k = end;
        }
        let mut results = Vec::new();
        for &v in self.input.live_out {
            results.push((v, table.result(v, order.len())?));
        }
        let Table {
            mut stages,
            lives,
            feeds,
            ..
        } = table;
        let mut unshared = vec![(0, 0); count];
        for b in 0..count {
            unshared[b] = place_tensors(&mut stages[b], &lives[b], shared, b)?;
        }
        let crossings = self.crossing_report(&steps, &stages, shared);
        let report = self.node_report(shared, kernels, answers, at);
        let mut executables = Vec::with_capacity(count);
        for (b, stage) in stages.into_iter().enumerate() {
            let used = !stage.tensors.is_empty();
            executables.push(match used {
                true => Some(shared.contexts[b].prepare(stage)?),
                false => None,
            });
        }
        let feeds = self
            .input
            .feeds
            .iter()
            .map(|(v, _)| (*v, feeds.get(v).cloned().unwrap_or_default()))
            .collect();
        Ok(PlannedStage {
            executables,
            steps,
            feeds,
            results,
            nodes,
            report,
            crossings,
            unshared,
            times: Vec::new(),
        })
    }

    fn crossing_report(
        &self,
        steps: &[Step],
        stages: &[StageSpec],
        shared: &Shared,
    ) -> Vec<CrossingReport> {
        let id = |b: usize| shared.backends[b].describe().id.to_string();
        let mut list = Vec::new();
        for step in steps {
            if let Step::Permute { from, to, pairs } = step {
                for (s, _) in pairs {
                    let slot = &stages[*from].tensors[*s];
                    list.push(CrossingReport {
                        value: slot.name.clone(),
                        from: id(*from),
                        to: id(*to),
                        bytes: slot.spec.bytes(),
                    });
                }
            }
        }
        list
    }

    fn node_report(
        &self,
        shared: &Shared,
        kernels: &[NodeId],
        answers: &[Answers],
        at: &[usize],
    ) -> Vec<NodeReport> {
        let graph = self.input.graph;
        let position: HashMap<NodeId, usize> =
            kernels.iter().enumerate().map(|(i, &n)| (n, i)).collect();
        let id = |b: usize| shared.backends[b].describe().id.to_string();
        let stage = &self.input.stages.stages[self.input.index];
        stage
            .nodes
            .iter()
            .map(|n| {
                let node = &graph.nodes[n.0];
                let placed = position.get(n);
                let refusals = placed.map_or_else(Vec::new, |&i| {
                    let refused = answers[i].iter().enumerate();
                    refused
                        .filter_map(|(b, a)| {
                            a.as_ref().err().map(|r| RefusalReport {
                                backend: id(b),
                                reason: r.reason.clone(),
                            })
                        })
                        .collect()
                });
                NodeReport {
                    name: node.name.clone(),
                    op: node.op.name().to_string(),
                    backend: placed.map_or_else(|| "plan".to_string(), |&i| id(at[i])),
                    scope: Vec::new(),
                    stage: self.input.index,
                    inputs: node
                        .present_inputs()
                        .map(|v| graph.value(v).name.clone())
                        .collect(),
                    outputs: node
                        .outputs
                        .iter()
                        .filter_map(|v| {
                            self.specs.get(v).map(|s| PortReport {
                                name: graph.value(*v).name.clone(),
                                dtype: s.dtype.to_string(),
                                shape: s.shape.clone(),
                            })
                        })
                        .collect(),
                    refusals,
                }
            })
            .collect()
    }
}

/// The tensors of every backend while a stage is laid out.
struct Table<'a> {
    planner: &'a Planner<'a>,
    device: Vec<bool>,
    stages: Vec<StageSpec>,
    /// Per backend, the tensor of each value.
    of: Vec<HashMap<ValueId, usize>>,
    /// Per backend and tensor, the first and last time it is needed.
    lives: Vec<Vec<(usize, usize)>>,
    /// The backend that computes a value, and when.
    home: HashMap<ValueId, (usize, usize)>,
    feeds: HashMap<ValueId, Vec<(usize, usize)>>,
    /// Of the part being built: source backend, target backend, tensors.
    crossings: Vec<(usize, usize, (usize, usize))>,
}

impl Table<'_> {
    fn kernel(&mut self, b: usize, id: NodeId, time: usize, part: usize) -> Result<usize> {
        let node = &self.planner.input.graph.nodes[id.0];
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for v in &node.inputs {
            inputs.push(match v {
                Some(v) => Some(self.tensor(b, *v, time, part)?),
                None => None,
            });
        }
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for &v in &node.outputs {
            outputs.push(self.add(b, v, Place::Arena { offset: 0 }, (time, time))?);
        }
        self.stages[b].nodes.push(KernelSpec {
            name: node.name.clone(),
            op: node.op.clone(),
            inputs,
            outputs,
        });
        Ok(self.stages[b].nodes.len() - 1)
    }

    fn add(&mut self, b: usize, v: ValueId, place: Place, life: (usize, usize)) -> Result<usize> {
        let spec = self.planner.spec(v)?;
        let stage = &mut self.stages[b];
        stage.tensors.push(TensorSlot {
            name: self.planner.input.graph.value(v).name.clone(),
            spec,
            place,
        });
        self.lives[b].push(life);
        self.of[b].insert(v, stage.tensors.len() - 1);
        Ok(stage.tensors.len() - 1)
    }

    /// The tensor of `v` on backend `b`, made or brought there if it is not; used at `time` by the
    /// part that starts at `part`.
    fn tensor(&mut self, b: usize, v: ValueId, time: usize, part: usize) -> Result<usize> {
        if let Some(&t) = self.of[b].get(&v) {
            let root = self.stages[b].root(t);
            let life = &mut self.lives[b][root];
            life.1 = life.1.max(time);
            return Ok(t);
        }
        let spec = self.planner.spec(v)?;
        if spec.value.is_some() {
            let constant = self.planner.input.graph.value(v).constant.is_some();
            let key = ConstantKey((self.planner.input.runner << 32) | v.0 as u64);
            let place = if constant {
                Place::Constant(key)
            } else {
                Place::Planned
            };
            return self.add(b, v, place, (time, time));
        }
        if let Some(&of) = self.planner.view_of.get(&v) {
            let t = self.tensor(b, of, time, part)?;
            return self.add(b, v, Place::Alias(t), (time, time));
        }
        // The host takes what comes in as it is; a device copies it into its arena.
        let place = if self.device[b] {
            Place::Arena { offset: 0 }
        } else {
            Place::Input
        };
        if let Some(&(home, _)) = self.home.get(&v) {
            let t = self.add(b, v, place, (part, time))?;
            let source = self.tensor(home, v, part, part)?;
            self.crossings.push((home, b, (source, t)));
            return Ok(t);
        }
        let t = self.add(b, v, place, (0, time))?;
        self.feeds.entry(v).or_default().push((b, t));
        Ok(t)
    }

    fn take_crossings(&mut self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (source, target, pair) in self.crossings.drain(..) {
            let same = steps.iter_mut().find_map(|s| match s {
                Step::Permute { from, to, pairs } if (*from, *to) == (source, target) => {
                    Some(pairs)
                }
                _ => None,
            });
            match same {
                Some(pairs) => pairs.push(pair),
                None => steps.push(Step::Permute {
                    from: source,
                    to: target,
                    pairs: vec![pair],
                }),
            }
        }
        steps
    }

    /// Where the value `v`, which leaves the stage at time `end`, comes from.
    fn result(&mut self, v: ValueId, end: usize) -> Result<Source> {
        let spec = self.planner.spec(v)?;
        if let Some(value) = spec.value {
            return Ok(Source::Known(value));
        }
        let root = self.planner.root(v);
        let Some(&(home, _)) = self.home.get(&root) else {
            let value = self.planner.spec(root)?.value;
            return match value {
                Some(t) => Ok(Source::Known(t.reshaped(&spec.shape)?)),
                None => Ok(Source::Feed(root, spec.shape)),
            };
        };
        let tensor = self.tensor(home, v, end, end)?;
        let at = self.stages[home].root(tensor);
        if !self.device[home] {
            self.stages[home].tensors[at].place = Place::Output;
        }
        Ok(Source::Tensor {
            backend: home,
            tensor,
        })
    }
}

/// Gives arena tensors their offsets. Returns the sum of their bytes and the lower bound.
fn place_tensors(
    stage: &mut StageSpec,
    lives: &[(usize, usize)],
    shared: &Shared,
    b: usize,
) -> Result<(usize, usize)> {
    let backend = &shared.backends[b];
    let limits = backend.describe();
    let mut which = Vec::new();
    let mut requests = Vec::new();
    for (i, slot) in stage.tensors.iter().enumerate() {
        if let Place::Arena { .. } = slot.place {
            let bytes = backend.tensor_bytes(&slot.spec);
            if bytes as u64 > limits.max_tensor_bytes {
                return Err(Error::new(
                    ErrorCode::Limit,
                    format!(
                        "the tensor `{}` is too large for `{}`",
                        slot.name, limits.id
                    ),
                )
                .with_expected(format!("at most {} bytes", limits.max_tensor_bytes))
                .with_got(format!("{bytes} bytes")));
            }
            which.push(i);
            requests.push(Request {
                bytes,
                first: lives[i].0,
                last: lives[i].1,
            });
        }
    }
    let layout = memory::plan(&requests, limits.alignment.max(1));
    if layout.bytes as u64 > limits.max_arena_bytes {
        return Err(Error::new(
            ErrorCode::Limit,
            format!("the intermediates do not fit on `{}`", limits.id),
        )
        .with_expected(format!("at most {} bytes", limits.max_arena_bytes))
        .with_got(format!("{} bytes", layout.bytes)));
    }
    for (&i, &offset) in which.iter().zip(&layout.offsets) {
        stage.tensors[i].place = Place::Arena { offset };
    }
    stage.arena_bytes = layout.bytes;
    let sum = requests.iter().map(|r| r.bytes).sum();
    Ok((sum, memory::lower_bound(&requests)))
}

/// What Shape and Size say of a shape; `None` for other operators.
fn from_shape(op: &dyn crate::Operator, shape: &[usize]) -> Result<Option<Tensor>> {
    let as_i64 = |d: usize| d as i64;
    if let Some(s) = op.downcast_ref::<ShapeOf>() {
        let r = shape.len() as i64;
        let clamp = |i: i64| (if i < 0 { i + r } else { i }).clamp(0, r) as usize;
        let (a, b) = (clamp(s.start), clamp(s.end.unwrap_or(r)));
        let dims: Vec<i64> = shape[a..b.max(a)].iter().copied().map(as_i64).collect();
        return Tensor::from_slice(&[dims.len()], &dims).map(Some);
    }
    if op.is::<Size>() {
        return Tensor::scalar(shape.iter().copied().map(as_i64).product::<i64>()).map(Some);
    }
    Ok(None)
}

fn infer_concrete(
    node: &crate::Node,
    inputs: &[Option<TensorSpec>],
    shared: &Shared,
) -> Result<Vec<TensorSpec>> {
    let facts: Vec<Option<InputFact>> = inputs
        .iter()
        .map(|s| {
            s.as_ref().map(|s| InputFact {
                fact: crate::Fact::fixed(s.dtype, &s.shape),
                value: s.value.clone(),
            })
        })
        .collect();
    let outputs = node.op.infer(&InferContext {
        inputs: &facts,
        outputs: node.outputs.len(),
    })?;
    if outputs.len() < node.outputs.len() {
        return Err(Error::new(
            ErrorCode::InvalidGraph,
            "the node has more outputs than its operator",
        ));
    }
    outputs
        .iter()
        .take(node.outputs.len())
        .map(|f| match (f.dtype, f.concrete()) {
            (Some(dtype), Some(shape)) => {
                if byte_count(dtype, &shape)? > shared.options.max_tensor_bytes {
                    return Err(Error::new(
                        ErrorCode::Limit,
                        format!("a {dtype} tensor of shape {shape:?} is too large"),
                    )
                    .with_expected(format!("at most {} bytes", shared.options.max_tensor_bytes)));
                }
                Ok(TensorSpec::new(dtype, &shape))
            }
            _ => Err(Error::new(
                ErrorCode::Shape,
                format!("the shape of an output cannot be found: {f}"),
            )),
        })
        .collect()
}

/// What a plan was made for: shapes, and contents where planning looked at them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key(Vec<TensorSpec>);

impl Key {
    pub fn of(feeds: &[(ValueId, TensorSpec)]) -> Key {
        Key(feeds.iter().map(|(_, s)| s.clone()).collect())
    }
}

impl PlannedStage {
    /// Runs the stage: `env` holds its inputs and takes its results. `host` says which results the
    /// host will look at.
    pub async fn run(
        &mut self,
        env: &mut [Option<Handle>],
        host: &[bool],
        shared: &mut Shared,
    ) -> Result<()> {
        let missing = || Error::new(ErrorCode::State, "a stage ran before its inputs were there");
        for e in self.executables.iter_mut().flatten() {
            e.set_profiling(shared.profiling);
            e.begin()?;
        }
        for (v, targets) in &self.feeds {
            for &(b, t) in targets {
                let handle = env[v.0].clone().ok_or_else(missing)?;
                let e = self.executables[b].as_mut().ok_or_else(missing)?;
                match handle {
                    Handle::Device(d) if d.backend == shared.backends[b].describe().id => {
                        e.import(t, &d)?;
                    }
                    other => {
                        let tensor = other.into_host(shared).await?;
                        env[v.0] = Some(Handle::Host(tensor.clone()));
                        e.write(t, &tensor)?;
                    }
                }
            }
        }
        let scheduler = shared.options.scheduler.clone();
        scheduler
            .run(crate::schedule::StageRun {
                executables: &mut self.executables,
                steps: &self.steps,
                interrupt: &shared.interrupt,
            })
            .await?;
        let mut reads: Vec<(Vec<ValueId>, Vec<usize>)> =
            vec![Default::default(); self.executables.len()];
        for (v, source) in &self.results {
            let handle = match source {
                Source::Feed(of, shape) => {
                    env[of.0].clone().ok_or_else(missing)?.reshaped(shape)?
                }
                Source::Known(t) => Handle::Host(t.clone()),
                Source::Tensor { backend, tensor } => {
                    let on_host = shared.backends[*backend].describe().memory == Memory::Host;
                    if on_host || host[v.0] {
                        reads[*backend].0.push(*v);
                        reads[*backend].1.push(*tensor);
                        continue;
                    }
                    let e = self.executables[*backend].as_mut().ok_or_else(missing)?;
                    Handle::Device(e.export(*tensor)?)
                }
            };
            env[v.0] = Some(handle);
        }
        for (b, (values, tensors)) in reads.iter().enumerate() {
            if let Some(e) = self.executables[b].as_mut()
                && !tensors.is_empty()
            {
                for (v, t) in values.iter().zip(e.read(tensors).await?) {
                    env[v.0] = Some(Handle::Host(t));
                }
            }
        }
        self.times.clear();
        for e in &mut self.executables {
            self.times.push(match e {
                Some(e) => {
                    e.end()?;
                    if shared.profiling {
                        e.profile().await?
                    } else {
                        Vec::new()
                    }
                }
                None => Vec::new(),
            });
        }
        Ok(())
    }
}
