//! Changes a plan for inputs of other shapes. What depends on the inputs is inferred again, its backends are
//! asked again, and its kernels are told their new sizes; all else stays. Where another plan might be better, or a backend
//! cannot change its part, the stage is planned anew. Where inputs go on growing ([`super::course`]), shapes are only computed.

use std::sync::Arc;

use super::arena::Rooms;
use super::changed::{Changed, ChangedNode};
use super::course::{Course, Search};
use super::{Obstacle, PlannedStage, Source, StageInput};
use crate::backend::{Allocator, Backend, KernelChange, StageChange, TensorChange};
use crate::error::Result;
use crate::fact::TensorSpec;
use crate::graph::{NodeId, NodeSpec, ValueId};
use crate::ids::{BackendIndex, IdMap, KernelIndex, PerBackend, TensorIndex};
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
