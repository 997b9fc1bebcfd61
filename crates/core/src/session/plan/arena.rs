//! Offsets in the arena.

use super::fallback::Obstacle;
use crate::backend::{Backend, KernelSpec, Location, StageSpec};
use crate::error::{Error, ErrorCode, Result};
use crate::graph::NodeId;
use crate::ids::{BackendIndex, KernelIndex, PerTensor, TensorIndex};
use crate::memory::{self, Offsets, Request};
use crate::report::{MemoryPlan, PlannedTensor, TensorRole};

/// The tensors of a backend's share of a stage that lie in its arena, and what each needs of it.
#[derive(Clone, Default)]
pub(in crate::session) struct Rooms {
    /// In order.
    pub tensors: Vec<TensorIndex>,
    pub requests: Vec<Request>,
    /// The size of the arena.
    pub bytes: usize,
}

/// Why a backend cannot have the tensors of its share of a stage.
pub(in crate::session) struct NoRoom {
    /// The tensor that is too large; `None` where all of them are, together.
    pub tensor: Option<TensorIndex>,
    pub error: Error,
}

impl NoRoom {
    /// What is in question are those of `nodes`, the kernels of the backend's share with their nodes, that touch the tensor.
    pub fn obstacle(
        self,
        backend: BackendIndex,
        stage: &StageSpec,
        nodes: impl Iterator<Item = (KernelIndex, NodeId)>,
    ) -> Obstacle {
        let touches = |kernel: KernelIndex| {
            let KernelSpec {
                inputs, outputs, ..
            } = &stage.nodes[kernel];
            let mut tensors = inputs.iter().flatten().chain(outputs);
            tensors.any(|&t| Some(stage.root(t)) == self.tensor)
        };
        let nodes = nodes.filter(|(kernel, _)| touches(*kernel));
        Obstacle::of(backend, nodes.map(|(_, id)| id).collect(), self.error)
    }
}

impl Rooms {
    /// `lives` holds the first and last time that each tensor of the stage is needed.
    ///
    /// # Errors
    /// `Limit` where one is larger than the backend's tensors may be.
    fn of(
        stage: &StageSpec,
        lives: &PerTensor<(usize, usize)>,
        backend: &dyn Backend,
    ) -> Result<Rooms, NoRoom> {
        let limits = backend.describe();
        let allocator = backend.allocator();
        let mut rooms = Rooms::default();
        for (i, slot) in stage.tensors.entries() {
            let in_arena = match slot.location {
                Location::Arena { .. } => true,
                // Kernels bind what lies elsewhere in the host's memory, too.
                Location::Input | Location::Output => false,
                _ => continue,
            };
            let bytes = allocator.tensor_bytes(&slot.spec);
            if bytes as u64 > limits.max_tensor_bytes {
                let what = format!(
                    "the tensor `{}` is too large for `{}`",
                    slot.name, limits.id
                );
                return Err(NoRoom {
                    tensor: Some(i),
                    error: too_large(what, limits.max_tensor_bytes, bytes),
                });
            }
            if in_arena {
                rooms.tensors.push(i);
                rooms.requests.push(Request {
                    bytes,
                    first: lives[i].0,
                    last: lives[i].1,
                });
            }
        }
        Ok(rooms)
    }

    /// Offsets for all of them.
    ///
    /// # Errors
    /// `Limit` where the arena would be larger than the backend's may be.
    pub fn plan(&self, backend: &dyn Backend) -> Result<Offsets> {
        let limits = backend.describe();
        let alignment = limits.alignment.max(1);
        // A backend may say anything; the planner adds.
        let countable = self.requests.iter().try_fold(0usize, |sum, r| {
            sum.checked_add(r.bytes.checked_next_multiple_of(alignment)?)
        });
        if countable.is_none() {
            let what = format!("the intermediates on `{}` cannot be counted", limits.id);
            return Err(too_large(what, limits.max_arena_bytes, usize::MAX));
        }
        let planned = memory::plan(&self.requests, alignment);
        if planned.bytes as u64 > limits.max_arena_bytes {
            let what = format!("the intermediates do not fit on `{}`", limits.id);
            return Err(too_large(what, limits.max_arena_bytes, planned.bytes));
        }
        Ok(planned)
    }

    /// Says in `plan` what is where, of the same tensors with other offsets.
    pub fn describe(&self, offsets: &[usize], plan: &mut MemoryPlan) {
        plan.bytes = self.bytes;
        plan.lower_bound_bytes = memory::lower_bound(&self.requests);
        plan.unshared_bytes = unshared(&self.requests);
        let rooms = self.requests.iter().zip(offsets);
        for (tensor, (request, &offset)) in plan.tensors.iter_mut().zip(rooms) {
            tensor.bytes = request.bytes;
            tensor.offset = offset;
        }
    }
}

fn too_large(what: String, most: u64, bytes: usize) -> Error {
    Error::new(ErrorCode::Limit, what)
        .with_expected(format!("at most {most} bytes"))
        .with_got(format!("{bytes} bytes"))
}

/// Gives the tensors of a backend's share of a stage their offsets; `lives` holds the first and
/// last time that each is needed. There is no plan where nothing is in the arena.
///
/// # Errors
/// `Limit` where the backend has no room for them.
pub(in crate::session) fn lay_out(
    stage: &mut StageSpec,
    lives: &PerTensor<(usize, usize)>,
    backend: &dyn Backend,
) -> Result<(Rooms, Option<MemoryPlan>), NoRoom> {
    let limits = backend.describe();
    let mut rooms = Rooms::of(stage, lives, backend)?;
    let planned = rooms.plan(backend).map_err(|error| NoRoom {
        tensor: None,
        error,
    })?;
    rooms.bytes = planned.bytes;
    let (which, requests) = (&rooms.tensors, &rooms.requests);
    for (&i, &offset) in which.iter().zip(&planned.offsets) {
        stage.tensors[i].location = Location::Arena { offset };
    }
    stage.arena_bytes = planned.bytes;
    if requests.is_empty() {
        return Ok((rooms, None));
    }
    // A view of a tensor that leaves the stage makes the tensor leave.
    let mut roles: PerTensor<_> = vec![TensorRole::Intermediate; stage.tensors.len()].into();
    let external = [
        (&stage.outputs, TensorRole::Output),
        (&stage.inputs, TensorRole::Input),
    ];
    for (tensors, role) in external {
        for &t in tensors {
            roles[stage.root(t)] = role;
        }
    }
    let tensors = which.iter().zip(&planned.offsets).zip(requests);
    let plan = MemoryPlan {
        backend: limits.id.to_string(),
        bytes: planned.bytes,
        lower_bound_bytes: memory::lower_bound(requests),
        unshared_bytes: unshared(requests),
        steps: requests.iter().map(|r| r.last + 1).max().unwrap_or(0),
        tensors: tensors
            .map(|((i, &offset), request)| PlannedTensor {
                name: stage.tensors[*i].name.clone(),
                offset,
                bytes: request.bytes,
                first: request.first,
                last: request.last,
                role: roles[*i],
            })
            .collect(),
        ..MemoryPlan::default()
    };
    Ok((rooms, Some(plan)))
}

/// The bytes of all tensors, if none had memory that another had before; at most as many as a number of this type can be.
fn unshared(requests: &[Request]) -> usize {
    let bytes = requests.iter().map(|r| r.bytes);
    bytes.fold(0, usize::saturating_add)
}
