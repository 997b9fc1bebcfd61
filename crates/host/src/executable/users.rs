//! Tensors in host memory of the user's: read and written where they are, for one run.

use kilim_core::backend::{DeviceTensor, InHost, Location, TensorSpec};
use kilim_core::ids::TensorIndex;
use kilim_core::{Result, Tensor};

use super::holder::Holder;
use super::{CpuExecutable, state_error};
use crate::kernel::View;

impl CpuExecutable {
    /// Has an input be what the user's memory holds.
    ///
    /// # Errors
    /// `Shape` where the memory is for another tensor, `State` where the tensor is no input or the memory is not the host's.
    pub(super) fn read_users(&mut self, tensor: TensorIndex, data: &DeviceTensor) -> Result<()> {
        let view = self.users_view(tensor, data)?;
        let slot = self.prepared.tensors.slot(tensor)?;
        if slot.location != Location::Input {
            return Err(state_error(format!("`{}` is not an input", slot.name)));
        }
        self.reclaim(tensor);
        self.lend(tensor, view, data);
        Ok(())
    }

    /// Has an output be computed in the user's memory; false where no kernel writes it, or it goes elsewhere already.
    ///
    /// # Errors
    /// `Shape` where the memory is for another tensor, `State` where it is not the host's.
    pub(super) fn write_users(
        &mut self,
        tensor: TensorIndex,
        memory: &DeviceTensor,
    ) -> Result<bool> {
        let view = self.users_view(tensor, memory)?;
        let root = self.prepared.tensors.root(tensor);
        let writes = matches!(self.holders[root], Holder::Output(_));
        if writes {
            self.lend(root, view, memory);
        }
        Ok(writes)
    }

    fn users_view(&self, tensor: TensorIndex, memory: &DeviceTensor) -> Result<View> {
        let spec = TensorSpec::new(memory.dtype, &memory.shape);
        self.prepared.tensors.check(tensor, &spec)?;
        let view = View::of_users(memory);
        view.ok_or_else(|| state_error("a tensor is in no memory of the host".to_string()))
    }

    fn lend(&mut self, root: TensorIndex, view: View, memory: &DeviceTensor) {
        let dtype = self.prepared.tensors.slots()[root].spec.dtype;
        self.set_view(root, view.with_dtype(dtype));
        let lent = Holder::User(memory.clone());
        let before = std::mem::replace(&mut self.holders[root], lent);
        self.users.push((root, before));
    }

    /// Lets go of the user's memory when the run has ended.
    pub(super) fn give_back(&mut self) {
        while let Some((root, before)) = self.users.pop() {
            let dtype = self.prepared.tensors.slots()[root].spec.dtype;
            self.set_view(root, View::empty(dtype));
            self.holders[root] = before;
        }
    }
}

/// The elements in the user's memory, under the shape of a tensor of the stage.
///
/// # Errors
/// `Limit` where memory is short.
pub(super) fn copy(memory: &DeviceTensor, shape: &[usize]) -> Result<Tensor> {
    InHost::copied(memory)?.reshaped(shape)
}
