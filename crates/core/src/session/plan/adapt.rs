//! Changes a plan for inputs of other shapes. What depends on the inputs is inferred again, its backends are
//! asked again, and its kernels are told their new sizes; all else stays. Where another plan might be better, or a backend
//! cannot change its part, the stage is planned anew. Where inputs go on growing ([`super::course`]), shapes are only computed.

use std::sync::Arc;

use super::arena::Rooms;
use super::course::{Course, Search};
use super::infer::{infer_concrete, known_outputs};
use super::{Obstacle, PlannedStage, Source, StageInput};
use crate::backend::{Allocator, Backend, KernelChange, StageChange, TensorChange};
use crate::error::Result;
use crate::fact::TensorSpec;
use crate::graph::{NodeId, NodeSpec, ValueId};
use crate::ids::{BackendIndex, IdMap, KernelIndex, PerBackend, TensorIndex};
use crate::ops::Custom;
use crate::schedule::Step;
use crate::session::Run;

/// How far the operations of a run may go from those that the stage was placed and laid out for, as a factor.
const FAR: f64 = 2.0;

/// A tensor that has outgrown its room gets one that is larger than the tensor by this part.
const SLACK: usize = 4;

/// Rooms of tensors that grow are multiples of so many bytes.
const LITTLE: usize = 1024;

/// Where a node's kernel is, and what it computes.
#[derive(Clone, Copy)]
pub(super) struct PlannedKernel {
    pub backend: BackendIndex,
    /// The index in the backend's [`crate::backend::StageSpec::nodes`].
    pub kernel: KernelIndex,
    pub operations: f64,
}

/// What a plan was made from, as far as it is needed to change the plan.
pub(super) struct Frame {
    /// For each node of the stage, its kernel if it has one.
    pub kernels: Vec<Option<PlannedKernel>>,
    /// Outputs that are the bytes of other values, each with the value that is no view itself.
    pub view_of: IdMap<ValueId, ValueId>,
    /// For each backend, the tensor of each value.
    pub tensors: PerBackend<IdMap<ValueId, TensorIndex>>,
    /// The rooms in each backend's arena.
    pub rooms: PerBackend<Rooms>,
    /// The specs of everything that the nodes of the stage read and write.
    pub specs: IdMap<ValueId, TensorSpec>,
    /// What says how many bytes a tensor takes, for each backend.
    pub allocators: PerBackend<Arc<dyn Allocator>>,
    /// Operations of a run as the stage was placed.
    pub operations: f64,
    /// The latest change, where the inputs may go on growing as they did with it.
    pub latest: Option<Adaptation>,
    pub search: Search,
    /// Nodes that a plan which goes on changing should leave to kernels ([`StageInput::lively`]).
    pub lively: Vec<NodeId>,
}

/// What a plan needs to become that of other inputs. It is kept and filled anew where inputs go on growing as they did.
pub(in crate::session) struct Adaptation {
    /// The values that change, each behind those that it is computed from.
    pub(super) values: Vec<(ValueId, TensorSpec)>,
    /// The nodes that read such values, in order.
    pub(super) nodes: Vec<ChangedNode>,
    /// The changes of each backend's share of the stage.
    stages: PerBackend<StageChange>,
    /// The rooms of backends whose arenas are laid out anew, with the offsets.
    rooms: PerBackend<Option<(Rooms, Vec<usize>)>>,
    operations: f64,
    pub(super) course: Option<Course>,
}

/// A node that reads changed values.
pub(super) struct ChangedNode {
    /// The node's place in the stage.
    pub place: usize,
    pub inputs: Vec<Option<TensorSpec>>,
    pub outputs: Vec<TensorSpec>,
    /// For each input, which of the changed values it is.
    pub reads: Vec<Option<usize>>,
    /// For each output, which of the changed values it is.
    pub writes: Vec<Option<usize>>,
    /// Whether what is known of the outputs depends on more than the inputs' shapes.
    pub by_contents: bool,
    operations: f64,
    /// The place of the kernel's change in [`StageChange::kernels`].
    kernel: Option<usize>,
}

/// The specs of a stage that are known anew.
pub(super) struct Changed<'a> {
    frame: &'a Frame,
    /// Where each changed value stands in `values`.
    at: IdMap<ValueId, usize>,
    pub values: Vec<(ValueId, TensorSpec)>,
    pub nodes: Vec<ChangedNode>,
}

impl<'a> Changed<'a> {
    /// Infers again what depends on the feeds that are not as before. `None` where the plan could not follow.
    ///
    /// # Errors
    /// Those of inferring shapes, as in planning; `Aborted` where the run is to stop.
    pub fn by(
        frame: &'a Frame,
        feeds: &[(ValueId, TensorSpec)],
        input: &StageInput,
        run: &Run<'_>,
    ) -> Result<Option<Changed<'a>>> {
        let mut changed = Changed {
            frame,
            at: IdMap::default(),
            values: Vec::new(),
            nodes: Vec::new(),
        };
        for (v, spec) in feeds {
            if changed.take(*v, spec).is_none() {
                return Ok(None);
            }
        }
        for (place, &id) in input.nodes().iter().enumerate() {
            let node = &input.graph.nodes[id.0];
            if !node.present_inputs().any(|v| changed.at.contains_key(&v)) {
                continue;
            }
            run.interrupt.check()?;
            let Some(inputs) = changed.all(&node.inputs) else {
                return Ok(None);
            };
            let outputs = inferred(input, id, &inputs, run)?;
            let known = |i: &Option<usize>| i.is_some_and(|i| changed.values[i].1.value.is_some());
            let reads = node.inputs.iter().map(|v| changed.at.get(&(*v)?).copied());
            let reads: Vec<_> = reads.collect();
            let by_contents = reads.iter().any(known)
                || outputs.iter().any(|spec| spec.value.is_some())
                || node.op.is::<Custom>();
            let mut writes = Vec::with_capacity(outputs.len());
            for (v, spec) in node.outputs.iter().zip(&outputs) {
                let Some(at) = changed.take(*v, spec) else {
                    return Ok(None);
                };
                writes.push(at);
            }
            changed.nodes.push(ChangedNode {
                place,
                inputs,
                outputs,
                reads,
                writes,
                by_contents,
                operations: 0.0,
                kernel: None,
            });
        }
        Ok(Some(changed))
    }

    /// The nodes whose outputs are known only to be known anew with every length, where no shape depends on them and a kernel would do.
    fn lively(&self, input: &StageInput, run: &Run<'_>) -> Vec<NodeId> {
        let evaluator = &run.shared.evaluator.describe().id;
        // Elsewhere there may be no kernel, or data would cross.
        if (run.shared.backends.iter()).any(|b| b.describe().id != *evaluator) {
            return Vec::new();
        }
        let is_lively = |changed: &&ChangedNode| {
            let id = input.nodes()[changed.place];
            let node = &input.graph.nodes[id.0];
            let spec = NodeSpec {
                name: &node.name,
                op: node.op.as_ref(),
                inputs: &changed.inputs,
                outputs: &changed.outputs,
            };
            let known = changed.outputs.iter().any(|spec| spec.value.is_some());
            let wanted = node.outputs.iter().any(|v| input.stages.wanted[v.0]);
            let costs_nothing = node.op.flow().measures() || node.op.is_view_for(&spec);
            known && !wanted && !costs_nothing && !input.lively.contains(&id)
        };
        let nodes = self.nodes.iter().filter(is_lively);
        nodes.map(|changed| input.nodes()[changed.place]).collect()
    }

    /// Takes what a value is from now on, and says where it stands if that is another than before. `None` where the plan
    /// could not follow.
    fn take(&mut self, v: ValueId, spec: &TensorSpec) -> Option<Option<usize>> {
        let old = self.frame.specs.get(&v)?;
        if old.dtype != spec.dtype || old.value.is_some() != spec.value.is_some() {
            return None;
        }
        if old == spec {
            return Some(None);
        }
        self.values.push((v, spec.clone()));
        self.at.insert(v, self.values.len() - 1);
        Some(Some(self.values.len() - 1))
    }

    fn all(&self, values: &[Option<ValueId>]) -> Option<Vec<Option<TensorSpec>>> {
        let spec = |v: &ValueId| match self.at.get(v) {
            Some(&at) => Some(&self.values[at].1),
            None => self.frame.specs.get(v),
        };
        let each = |v: &Option<ValueId>| match v {
            Some(v) => Some(Some(spec(v)?.clone())),
            None => Some(None),
        };
        values.iter().map(each).collect()
    }
}

/// The specs of a node's outputs, with values where they are known.
///
/// # Errors
/// Those of inferring shapes and of computing the node, with the node's name.
pub(super) fn inferred(
    input: &StageInput,
    id: NodeId,
    inputs: &[Option<TensorSpec>],
    run: &Run<'_>,
) -> Result<Vec<TensorSpec>> {
    let node = &input.graph.nodes[id.0];
    let at = |e: crate::Error| e.at(&node.name, node.op.name());
    let outputs = infer_concrete(input.graph, node, inputs, run).map_err(at)?;
    let known = known_outputs(input, id, inputs, &outputs, run).map_err(at)?;
    Ok(known.map_or(outputs, |values| {
        values.iter().map(TensorSpec::of).collect()
    }))
}

impl PlannedStage {
    /// What has to change for these inputs; `None` where the stage is to be planned anew.
    ///
    /// # Errors
    /// Those of inferring shapes, as in planning; `Aborted` where the run is to stop.
    // Pages whose inputs never grow need not fetch this: no part of it is to stand in its caller.
    #[inline(never)]
    pub fn adaptation(&mut self, input: &StageInput, run: &Run<'_>) -> Result<Option<Adaptation>> {
        let Some(frame) = &mut self.frame else {
            return Ok(None);
        };
        if let Some(mut kept) = frame.latest.take()
            && kept.advance(frame, input, run)?
            && kept.ask(frame, self.operations, input, run).is_some()
        {
            return Ok(Some(kept));
        }
        let due = frame.search.due();
        let Some(changed) = Changed::by(frame, input.feeds, input, run)? else {
            return Ok(None);
        };
        let lively = changed.lively(input, run);
        if !lively.is_empty() {
            frame.lively = lively;
            return Ok(None);
        }
        let course = due.then(|| Course::of(frame, &changed, input, run));
        let course = course.flatten();
        let Changed { values, nodes, .. } = changed;
        let mut adaptation = Adaptation {
            values,
            nodes,
            stages: vec![StageChange::default(); frame.tensors.len()].into(),
            rooms: frame.rooms.iter().map(|_| None).collect::<Vec<_>>().into(),
            operations: self.operations,
            course,
        };
        frame.search.found(adaptation.course.is_some());
        let asked = adaptation.ask(frame, self.operations, input, run);
        Ok(asked.map(|()| adaptation))
    }

    /// Nodes that the next plan should leave to kernels, where this one could not follow for their sake.
    pub fn take_lively(&mut self) -> Vec<NodeId> {
        let frame = self.frame.as_mut();
        frame.map_or_else(Vec::new, |frame| std::mem::take(&mut frame.lively))
    }

    /// Makes the change, and keeps what it was made by. Where it is false, or an error, the plan is of no use any more.
    ///
    /// # Errors
    /// Those of [`crate::backend::BackendContext::adapt`].
    #[inline(never)]
    pub fn adapt(
        &mut self,
        mut adaptation: Adaptation,
        run: &mut Run<'_>,
    ) -> Result<bool, Obstacle> {
        let Some(frame) = &mut self.frame else {
            return Ok(false);
        };
        for (v, source) in &mut self.results {
            let Some((_, spec)) = adaptation.values.iter().find(|(of, _)| of == v) else {
                continue;
            };
            match (source, &spec.value) {
                (Source::Feed(_, shape), _) => shape.clone_from(&spec.shape),
                (Source::Known(known), Some(value)) => *known = value.clone(),
                (Source::Known(_), None) => return Ok(false),
                (Source::Tensor { .. }, _) => {}
            }
        }
        let steps = self.steps.iter().flat_map(|step| match step {
            Step::Permute { from, pairs, .. } => pairs.iter().map(|p| (*from, p.0)).collect(),
            Step::Part { .. } => Vec::new(),
        });
        for ((from, tensor), report) in steps.zip(&mut self.crossings) {
            let changed = adaptation.stages[from].tensors.iter();
            if let Some(change) = changed.rev().find(|c| c.tensor == tensor) {
                report.bytes = change.spec.bytes();
            }
        }
        for node in &adaptation.nodes {
            if let Some(report) = self.report.get_mut(node.place) {
                for (port, spec) in report.outputs.iter_mut().zip(&node.outputs) {
                    port.shape.clone_from(&spec.shape);
                }
            }
            if let Some(kernel) = &mut frame.kernels[node.place] {
                kernel.operations = node.operations;
            }
        }
        for (b, change) in adaptation.stages.entries() {
            if change.is_empty() {
                continue;
            }
            let Some(executable) = &mut self.executables[b] else {
                return Ok(false);
            };
            let context = &mut run.shared.contexts[b];
            let adapted = context.adapt(&mut **executable, change, &run.interrupt);
            if !adapted.map_err(|e| Obstacle::of(b, Vec::new(), e))? {
                return Ok(false);
            }
        }
        for (b, laid_out) in adaptation.rooms.entries_mut() {
            let Some((rooms, offsets)) = laid_out.take() else {
                continue;
            };
            let plan = self.memory.iter_mut().find(|(on, _)| *on == b);
            if let Some((_, plan)) = plan {
                rooms.describe(&offsets, plan);
            }
            frame.rooms[b] = rooms;
        }
        for (v, spec) in &adaptation.values {
            if let Some(own) = frame.specs.get_mut(v) {
                own.clone_from(spec);
            }
        }
        self.operations = adaptation.operations;
        frame.latest = Some(adaptation).filter(|latest| latest.course.is_some());
        Ok(true)
    }
}

impl Adaptation {
    /// Asks the backends about the changed nodes and notes what becomes of their shares of the stage. `before`: the operations of a run
    /// before. `None` where the plan could not follow.
    fn ask(&mut self, frame: &Frame, before: f64, input: &StageInput, run: &Run<'_>) -> Option<()> {
        self.operations = before;
        for changed in &mut self.nodes {
            let node = &input.graph.nodes[input.nodes()[changed.place].0];
            let spec = NodeSpec {
                name: &node.name,
                op: node.op.as_ref(),
                inputs: &changed.inputs,
                outputs: &changed.outputs,
            };
            let Some(planned) = &frame.kernels[changed.place] else {
                let mut outputs = node.outputs.iter();
                let is_view = outputs.any(|v| frame.view_of.contains_key(v));
                if is_view && !node.op.is_view_for(&spec) {
                    return None;
                }
                continue;
            };
            let cost = run.shared.backends[planned.backend].supports(&spec).ok()?;
            changed.operations = cost.flops;
            self.operations += cost.flops - planned.operations;
            let kernels = &mut self.stages[planned.backend].kernels;
            let at = *changed.kernel.get_or_insert_with(|| {
                kernels.push(KernelChange {
                    kernel: planned.kernel,
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                });
                kernels.len() - 1
            });
            let change = &mut kernels[at];
            change.inputs.clone_from(&changed.inputs);
            change.outputs.clone_from(&changed.outputs);
            let specs = change.inputs.iter_mut().flatten();
            specs.chain(&mut change.outputs).for_each(unread);
        }
        let now = self.operations;
        if now > FAR * frame.operations || FAR * now < frame.operations {
            return None;
        }
        for (b, backend) in run.shared.backends.entries() {
            self.room(frame, b, &**backend)?;
        }
        Some(())
    }

    /// Notes the tensors of a backend that change, and lays its arena out anew where they have outgrown it.
    /// `None` where the backend has no room for them.
    fn room(&mut self, frame: &Frame, b: BackendIndex, backend: &dyn Backend) -> Option<()> {
        let limits = backend.describe();
        let allocator = &frame.allocators[b];
        let rooms = &frame.rooms[b];
        let mut outgrown = false;
        let change = &mut self.stages[b];
        change.arena_bytes = rooms.bytes;
        change.offsets.clear();
        self.rooms[b] = None;
        let mut at = 0;
        for (v, spec) in &self.values {
            let Some(&tensor) = frame.tensors[b].get(v) else {
                continue;
            };
            match change.tensors.get_mut(at) {
                Some(kept) => kept.spec.clone_from(spec),
                None => change.tensors.push(TensorChange {
                    tensor,
                    spec: spec.clone(),
                }),
            }
            unread(&mut change.tensors[at].spec);
            at += 1;
            let bytes = allocator.tensor_bytes(spec);
            if spec.value.is_none() && bytes as u64 > limits.max_tensor_bytes {
                return None;
            }
            if let Ok(i) = rooms.tensors.binary_search(&tensor) {
                outgrown |= bytes > rooms.requests[i].bytes;
            }
        }
        if !outgrown {
            return Some(());
        }
        let mut rooms = rooms.clone();
        for changed in &change.tensors {
            if let Ok(i) = rooms.tensors.binary_search(&changed.tensor) {
                rooms.requests[i].bytes = with_slack(allocator.tensor_bytes(&changed.spec))?;
            }
        }
        let planned = rooms.plan(backend).ok()?;
        rooms.bytes = planned.bytes;
        change.arena_bytes = planned.bytes;
        let tensors = rooms.tensors.iter().copied();
        change
            .offsets
            .extend(tensors.zip(planned.offsets.iter().copied()));
        self.rooms[b] = Some((rooms, planned.offsets));
        Some(())
    }
}

/// The size of a room in which a tensor of so many bytes can grow.
fn with_slack(bytes: usize) -> Option<usize> {
    bytes
        .checked_add(bytes / SLACK)?
        .checked_next_multiple_of(LITTLE)
}

/// Brings the spec into the form that kernels are chosen by.
fn unread(spec: &mut TensorSpec) {
    if let Some(value) = &mut spec.value {
        *value = value.unread();
    }
}
