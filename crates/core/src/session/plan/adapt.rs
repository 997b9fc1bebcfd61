//! Changes a plan for inputs of other shapes. What depends on the inputs is inferred again, its backends are
//! asked again, and its kernels are made anew; all else stays. Where another plan might be better, or a backend
//! cannot change its part, the stage is planned anew.

use super::arena::Rooms;
use super::infer::{infer_concrete, known_outputs};
use super::{Obstacle, PlannedStage, Source, StageInput};
use crate::backend::{Backend, KernelChange, StageChange, TensorChange};
use crate::error::Result;
use crate::fact::TensorSpec;
use crate::graph::{NodeSpec, ValueId};
use crate::ids::{BackendIndex, IdMap, KernelIndex, PerBackend, TensorIndex};
use crate::schedule::Step;
use crate::session::Run;
use crate::tensor::Tensor;

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
    /// Operations of a run as the stage was placed.
    pub operations: f64,
}

/// What a plan needs to become that of other inputs.
pub(in crate::session) struct Adaptation {
    /// The specs of the values that change.
    specs: IdMap<ValueId, TensorSpec>,
    /// Kernels that change, each with its node's place in the stage.
    kernels: Vec<(usize, PlannedKernel)>,
    /// The changes of each backend's share of the stage.
    stages: PerBackend<StageChange>,
    /// The rooms of backends whose arenas are laid out anew, with the offsets.
    rooms: PerBackend<Option<(Rooms, Vec<usize>)>>,
    /// Reports with another output: the node, the output, its shape.
    ports: Vec<(usize, usize, Vec<usize>)>,
    operations: f64,
}

/// The specs of a stage that are known anew.
struct Changed<'a> {
    frame: &'a Frame,
    specs: IdMap<ValueId, TensorSpec>,
}

impl Changed<'_> {
    /// Takes what a value is from now on. `None` where the plan could not follow.
    fn take(&mut self, v: ValueId, spec: TensorSpec) -> Option<()> {
        let old = self.frame.specs.get(&v)?;
        if old.dtype != spec.dtype || old.value.is_some() != spec.value.is_some() {
            return None;
        }
        if *old != spec {
            self.specs.insert(v, spec);
        }
        Some(())
    }

    fn spec(&self, v: ValueId) -> Option<&TensorSpec> {
        self.specs.get(&v).or_else(|| self.frame.specs.get(&v))
    }

    fn all(&self, values: &[Option<ValueId>]) -> Option<Vec<Option<TensorSpec>>> {
        let spec = |v: &Option<ValueId>| match v {
            Some(v) => Some(Some(self.spec(*v)?.clone())),
            None => Some(None),
        };
        values.iter().map(spec).collect()
    }
}

impl PlannedStage {
    /// What has to change for these inputs; `None` where the stage is to be planned anew.
    ///
    /// # Errors
    /// Those of inferring shapes, as in planning; `Aborted` where the run is to stop.
    // Pages whose inputs never grow need not fetch this: no part of it is to stand in its caller.
    #[inline(never)]
    pub fn adaptation(&self, input: &StageInput, run: &Run<'_>) -> Result<Option<Adaptation>> {
        let Some(frame) = &self.frame else {
            return Ok(None);
        };
        let mut changed = Changed {
            frame,
            specs: IdMap::default(),
        };
        for (v, spec) in &input.feeds {
            if changed.take(*v, spec.clone()).is_none() {
                return Ok(None);
            }
        }
        let mut adaptation = Adaptation {
            specs: IdMap::default(),
            kernels: Vec::new(),
            stages: vec![StageChange::default(); frame.tensors.len()].into(),
            rooms: frame.rooms.iter().map(|_| None).collect::<Vec<_>>().into(),
            ports: Vec::new(),
            operations: self.operations,
        };
        for (i, &id) in input.stages.stages[input.index].nodes.iter().enumerate() {
            let node = &input.graph.nodes[id.0];
            if !node
                .present_inputs()
                .any(|v| changed.specs.contains_key(&v))
            {
                continue;
            }
            run.interrupt.check()?;
            let at = |e: crate::Error| e.at(&node.name, node.op.name());
            let Some(inputs) = changed.all(&node.inputs) else {
                return Ok(None);
            };
            let mut outputs = infer_concrete(input.graph, node, &inputs, run).map_err(at)?;
            if let Some(values) = known_outputs(input, id, &inputs, &outputs, run).map_err(at)? {
                outputs = values.iter().map(TensorSpec::of).collect();
            }
            for (k, (v, spec)) in node.outputs.iter().zip(&outputs).enumerate() {
                if changed.take(*v, spec.clone()).is_none() {
                    return Ok(None);
                }
                adaptation.ports.push((i, k, spec.shape.clone()));
            }
            let spec = NodeSpec {
                name: &node.name,
                op: node.op.as_ref(),
                inputs: &inputs,
                outputs: &outputs,
            };
            let Some(planned) = &frame.kernels[i] else {
                let mut views = node
                    .outputs
                    .iter()
                    .filter(|v| frame.view_of.contains_key(v));
                if views.next().is_some() && !node.op.is_view_for(&spec) {
                    return Ok(None);
                }
                continue;
            };
            let Ok(cost) = run.shared.backends[planned.backend].supports(&spec) else {
                return Ok(None);
            };
            adaptation.operations += cost.flops - planned.operations;
            adaptation.kernels.push((
                i,
                PlannedKernel {
                    operations: cost.flops,
                    ..*planned
                },
            ));
            adaptation.stages[planned.backend]
                .kernels
                .push(KernelChange {
                    kernel: planned.kernel,
                    inputs: inputs.into_iter().map(|s| s.map(unread)).collect(),
                    outputs: outputs.into_iter().map(unread).collect(),
                });
        }
        let now = adaptation.operations;
        if now > FAR * frame.operations || FAR * now < frame.operations {
            return Ok(None);
        }
        adaptation.specs = changed.specs;
        for (b, backend) in run.shared.backends.entries() {
            if adaptation.room(frame, b, &**backend).is_none() {
                return Ok(None);
            }
        }
        Ok(Some(adaptation))
    }

    /// Makes the change. Where it is false, or an error, the plan is of no use any more.
    ///
    /// # Errors
    /// Those of [`crate::backend::BackendContext::adapt`].
    #[inline(never)]
    pub fn adapt(&mut self, adaptation: Adaptation, run: &mut Run<'_>) -> Result<bool, Obstacle> {
        let Some(frame) = &mut self.frame else {
            return Ok(false);
        };
        for (v, source) in &mut self.results {
            let Some(spec) = adaptation.specs.get(v) else {
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
        for (node, output, shape) in adaptation.ports {
            let port = self
                .report
                .get_mut(node)
                .and_then(|n| n.outputs.get_mut(output));
            if let Some(port) = port {
                port.shape = shape;
            }
        }
        let backends = self.executables.indices();
        for (b, change) in backends.clone().zip(adaptation.stages) {
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
        for (b, laid_out) in backends.zip(adaptation.rooms) {
            let Some((rooms, offsets)) = laid_out else {
                continue;
            };
            let plan = self.memory.iter_mut().find(|(on, _)| *on == b);
            if let Some((_, plan)) = plan {
                rooms.describe(&offsets, plan);
            }
            frame.rooms[b] = rooms;
        }
        frame.specs.extend(adaptation.specs);
        for (i, kernel) in adaptation.kernels {
            frame.kernels[i] = Some(kernel);
        }
        self.operations = adaptation.operations;
        Ok(true)
    }
}

impl Adaptation {
    /// Notes the tensors of a backend that change, and lays its arena out anew where they have outgrown it.
    /// `None` where the backend has no room for them.
    fn room(&mut self, frame: &Frame, b: BackendIndex, backend: &dyn Backend) -> Option<()> {
        let limits = backend.describe();
        let allocator = backend.allocator();
        let rooms = &frame.rooms[b];
        let mut sizes = Vec::new();
        let mut outgrown = false;
        let change = &mut self.stages[b];
        change.arena_bytes = rooms.bytes;
        for (v, spec) in &self.specs {
            let Some(&tensor) = frame.tensors[b].get(v) else {
                continue;
            };
            change.tensors.push(TensorChange {
                tensor,
                spec: unread(spec.clone()),
            });
            let bytes = allocator.tensor_bytes(spec);
            if spec.value.is_none() && bytes as u64 > limits.max_tensor_bytes {
                return None;
            }
            if let Ok(i) = rooms.tensors.binary_search(&tensor) {
                outgrown |= bytes > rooms.requests[i].bytes;
                sizes.push((i, bytes));
            }
        }
        if !outgrown {
            return Some(());
        }
        let mut rooms = rooms.clone();
        for (i, bytes) in sizes {
            rooms.requests[i].bytes = with_slack(bytes)?;
        }
        let planned = rooms.plan(backend).ok()?;
        rooms.bytes = planned.bytes;
        change.arena_bytes = planned.bytes;
        let tensors = rooms.tensors.iter().copied();
        change.offsets = tensors.zip(planned.offsets.iter().copied()).collect();
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

/// The spec in the form that kernels are chosen by.
fn unread(spec: TensorSpec) -> TensorSpec {
    TensorSpec {
        value: spec.value.as_ref().map(Tensor::unread),
        ..spec
    }
}
