//! Changing an executable for tensors of other shapes.

use std::sync::Arc;

use kilim_core::backend::{ContextState, KernelSpec, StageChange, StageTensors};
use kilim_core::ids::{KernelIndex, TensorIndex};
use kilim_core::memory::{MemoryMode, Storage};
use kilim_core::{DType, Error, Result, Tensor};

use super::holder::{Holder, held};
use super::outputs::output_bytes;
use super::{CpuExecutable, Kernel, Prepared, arena_bytes, state_error};
use crate::kernel::View;

/// What a context has made for a change of a stage.
#[derive(Default)]
pub struct Adapted {
    /// Bytes of scratch memory that the changed kernels need.
    pub scratch: usize,
    /// Tensors that are known, and that a new kernel reads as they are.
    pub values: Vec<(TensorIndex, Tensor)>,
}

impl CpuExecutable {
    /// Whether the change can be made: nobody else runs these kernels, and they have nothing to do with strings, whose
    /// numbers are given for a whole plan.
    pub fn can_adapt(&mut self, change: &StageChange) -> bool {
        let kernels = change.kernels.iter();
        let read = kernels.flat_map(|k| k.inputs.iter().flatten().chain(&k.outputs));
        let mut specs = read.chain(change.tensors.iter().map(|t| &t.spec));
        let texts = specs.any(|spec| spec.dtype == DType::String);
        !texts && Arc::get_mut(&mut self.prepared.steps).is_some()
    }

    /// A node of the stage, the stage's tensors as they are now, and the node's kernel, to be told other sizes.
    ///
    /// # Errors
    /// `State` where there is no such node, or somebody else runs these kernels.
    pub fn node(
        &mut self,
        kernel: KernelIndex,
    ) -> Result<(&KernelSpec, &StageTensors, &mut Box<dyn Kernel>)> {
        let Prepared {
            nodes,
            tensors,
            steps,
            ..
        } = &mut self.prepared;
        let steps = Arc::get_mut(steps).ok_or_else(shared)?;
        match (nodes.get(kernel), steps.get_mut(kernel)) {
            (Some(node), Some(step)) => Ok((node, tensors, &mut step.kernel)),
            _ => Err(state_error(format!("the stage has no node {kernel}"))),
        }
    }

    /// Takes over tensors and places; the kernels were told already.
    ///
    /// # Errors
    /// `Limit` where the session allows no such memory; `State` where the change is of another stage.
    pub fn adapt(
        &mut self,
        adapted: Adapted,
        change: &StageChange,
        state: &mut ContextState,
    ) -> Result<()> {
        state.tensors.adapt(&mut self.prepared.tensors, change)?;
        for (tensor, value) in adapted.values {
            let (view, holder) = held(value, &mut self.texts)?;
            self.set_view(tensor, view);
            self.holders[tensor] = holder;
        }
        // An output that has another size gets its memory when the next run begins, an input with the run.
        for changed in &change.tensors {
            if let Holder::Tensor(_) = self.holders[changed.tensor]
                && changed.spec.value.is_none()
            {
                self.reclaim(changed.tensor);
                self.set_view(changed.tensor, View::empty(changed.spec.dtype));
            }
        }
        self.prepared.scratch = self.prepared.scratch.max(adapted.scratch);
        self.prepared.arena_bytes = change.arena_bytes;
        let (scratch_at, bytes) = arena_bytes(&self.prepared);
        self.scratch_at = scratch_at;
        self.claim = state.ledger.acquire(Storage::Dynamic, bytes)?;
        self.outputs = None;
        self.grows = self.prepared.memory == MemoryMode::Normal;
        let own = output_bytes(&self.prepared, self.grows)?;
        self.outputs = Some(state.ledger.acquire(Storage::DynamicSeparate, own)?);
        self.generation = None;
        Ok(())
    }
}

fn shared() -> Error {
    state_error("the kernels of a stage are shared".to_string())
}
