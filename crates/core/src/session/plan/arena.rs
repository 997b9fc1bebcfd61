//! Offsets in the arena.

use crate::backend::{Backend, Location, StageSpec};
use crate::error::{Error, ErrorCode, Result};
use crate::ids::PerTensor;
use crate::memory::{self, Request};
use crate::report::{MemoryPlan, PlannedTensor, TensorRole};

/// Gives the tensors of a backend's share of a stage their offsets; `lives` holds the first and
/// last time that each is needed. `None` where nothing is in the arena.
pub(in crate::session) fn lay_out(
    stage: &mut StageSpec,
    lives: &PerTensor<(usize, usize)>,
    backend: &dyn Backend,
) -> Result<Option<MemoryPlan>> {
    let limits = backend.describe();
    let allocator = backend.allocator();
    let too_large = |what: String, most: u64, bytes: usize| {
        Error::new(ErrorCode::Limit, what)
            .with_expected(format!("at most {most} bytes"))
            .with_got(format!("{bytes} bytes"))
    };
    let mut which = Vec::new();
    let mut requests = Vec::new();
    for (i, slot) in stage.tensors.entries() {
        if let Location::Arena { .. } = slot.location {
            let bytes = allocator.tensor_bytes(&slot.spec);
            if bytes as u64 > limits.max_tensor_bytes {
                let what = format!(
                    "the tensor `{}` is too large for `{}`",
                    slot.name, limits.id
                );
                return Err(too_large(what, limits.max_tensor_bytes, bytes));
            }
            which.push(i);
            requests.push(Request {
                bytes,
                first: lives[i].0,
                last: lives[i].1,
            });
        }
    }
    let alignment = limits.alignment.max(1);
    // A backend may say anything; the planner adds.
    let countable = requests.iter().try_fold(0usize, |sum, r| {
        sum.checked_add(r.bytes.checked_next_multiple_of(alignment)?)
    });
    if countable.is_none() {
        let what = format!("the intermediates on `{}` cannot be counted", limits.id);
        return Err(too_large(what, limits.max_arena_bytes, usize::MAX));
    }
    let planned = memory::plan(&requests, alignment);
    if planned.bytes as u64 > limits.max_arena_bytes {
        let what = format!("the intermediates do not fit on `{}`", limits.id);
        return Err(too_large(what, limits.max_arena_bytes, planned.bytes));
    }
    for (&i, &offset) in which.iter().zip(&planned.offsets) {
        stage.tensors[i].location = Location::Arena { offset };
    }
    stage.arena_bytes = planned.bytes;
    if requests.is_empty() {
        return Ok(None);
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
    let tensors = which.iter().zip(&planned.offsets).zip(&requests);
    Ok(Some(MemoryPlan {
        backend: limits.id.to_string(),
        bytes: planned.bytes,
        lower_bound_bytes: memory::lower_bound(&requests),
        unshared_bytes: requests.iter().map(|r| r.bytes).sum(),
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
    }))
}
