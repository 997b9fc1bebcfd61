//! Calls of a library's executable that few libraries have: timing, tensors in host memory, tensors that stay.

use std::ffi::c_void;
use std::sync::Arc;

use kilim_core::backend::{DeviceTensor, Location};
use kilim_core::ids::{PerKernel, TensorIndex};
use kilim_core::memory::{Arena, Ledger};
use kilim_core::tensor::byte_count;
use kilim_core::{Error, ErrorCode, Result};
use kilim_plugin_abi as abi;

use super::PluginExecutable;
use crate::context::ContextHandle;
use crate::host::{self, Attached, Place};
use crate::kept::KeptTensor;
use crate::library::{Message, check};

type OnKept = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    usize,
    *mut c_void,
    *mut abi::Message,
) -> abi::Status;

impl PluginExecutable {
    /// An executable of `context`, a replica of this one's, that does the same in memory of its own; `None` where the
    /// library makes none.
    pub fn replica(
        &self,
        context: &Arc<ContextHandle>,
        memory: (&Arena, &Ledger, usize),
    ) -> Option<PluginExecutable> {
        let table = &self.context.library.table;
        let replicate = table.replicate?;
        self.raw_of(&context.library)?;
        let (mut raw, mut message) = (std::ptr::null_mut(), Message::new());
        // SAFETY: a function of the table, with what `replica` and `prepare` gave; both pointers live during the call.
        let status = unsafe {
            let this = table.this;
            replicate(this, context.raw(), self.raw, &raw mut raw, message.raw())
        };
        let prepared = (raw, self.stage.0.clone(), self.tensors.clone());
        PluginExecutable::new(self.id.clone(), prepared, context.clone(), memory, |_| {
            check(status, &message, "no replica")
        })
        .ok()
    }

    /// Seconds of each step in the last run; none where the library times nothing.
    pub(super) fn times(&self) -> Result<PerKernel<f64>> {
        let table = &self.context.library.table;
        let mut seconds = vec![0.0; self.stage.0.nodes.len()];
        let Some(times) = table.times else {
            return Ok(PerKernel::new());
        };
        let mut message = Message::new();
        // SAFETY: a function of the table, with what `prepare` gave; there is room for so many numbers.
        let status = unsafe {
            let (to, count) = (seconds.as_mut_ptr(), seconds.len());
            times(table.this, self.raw, to, count, message.raw())
        };
        self.check(status, &message, "did not say how long its steps took")?;
        match seconds.iter().all(|s| s.is_finite() && *s >= 0.0) {
            true => Ok(seconds.into_iter().collect()),
            false => {
                let what = format!(
                    "`{}` says of a step that it took a time that cannot be",
                    self.id
                );
                Err(Error::new(ErrorCode::Device, what))
            }
        }
    }

    /// Tells the library where a tensor in host memory is for this run.
    pub(super) fn attach(&mut self, tensor: TensorIndex, (data, bytes): Place) -> Result<()> {
        let table = &self.context.library.table;
        let Some(attach) = table.attach else {
            return Err(Error::new(ErrorCode::State, "the backend attaches nothing"));
        };
        let mut message = Message::new();
        // SAFETY: a function of the table, with what `prepare` gave; the elements live until the run has ended.
        let status = unsafe { attach(table.this, self.raw, tensor.0, data, bytes, message.raw()) };
        self.check(status, &message, "did not take a tensor in host memory")
    }

    /// Has a tensor of the stage get the elements of one that the library keeps, or of host memory of the user's.
    pub(super) fn use_kept(&mut self, tensor: TensorIndex, data: &DeviceTensor) -> Result<()> {
        self.fits(tensor, data.dtype, &data.shape)?;
        if self.location(tensor) == Some(Location::Input)
            && let Some(place) = host::users(data)
        {
            self.attached.lend(tensor, data.clone());
            return self.attach(tensor, place);
        }
        let call = self.context.library.table.use_kept;
        self.with_kept(call, tensor, data, "did not use a tensor that it keeps")?;
        if Attached::has(&self.stage.0, tensor) {
            self.attached.give(self.stage.0.root(tensor));
        }
        Ok(())
    }

    /// Has an output go into memory of the user's in this run; false where it cannot.
    pub(super) fn keep_in(&mut self, tensor: TensorIndex, memory: &DeviceTensor) -> Result<bool> {
        self.fits(tensor, memory.dtype, &memory.shape)?;
        let root = self.stage.0.root(tensor);
        if let Some(place) = host::users(memory) {
            let free =
                self.location(root) == Some(Location::Output) && !self.attached.is_users(root);
            if free {
                self.attached.lend(root, memory.clone());
                self.attach(root, place)?;
            }
            return Ok(free);
        }
        let call = self.context.library.table.keep_in;
        let what = "did not put a tensor into memory of the user's";
        match self.with_kept(call, tensor, memory, what) {
            Ok(()) => {
                if Attached::has(&self.stage.0, tensor) {
                    self.attached.give(root);
                }
                Ok(true)
            }
            Err(error) if error.code() == ErrorCode::Unsupported => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Calls a function of the library's with a tensor of the stage and one that it keeps.
    fn with_kept(
        &mut self,
        call: Option<OnKept>,
        tensor: TensorIndex,
        data: &DeviceTensor,
        what: &str,
    ) -> Result<()> {
        let library = self.context.library.clone();
        let (Some(kept), Some(call)) = (KeptTensor::of(data, &library), call) else {
            let what = "the tensor is not on this backend's device";
            return Err(Error::new(ErrorCode::State, what));
        };
        let arena = self.arena.clone();
        let _guard = self.lock(&arena)?;
        let mut message = Message::new();
        let status = kept.with(|raw| {
            // SAFETY: a function of the table, with what `prepare` and `keep` gave.
            unsafe { call(library.table.this, self.raw, tensor.0, raw, message.raw()) }
        });
        self.check(status, &message, what)
    }

    /// Takes a tensor out of the stage; a library that keeps none has them pass over the host.
    pub(super) fn keep(&mut self, tensor: TensorIndex) -> Result<DeviceTensor> {
        let library = self.context.library.clone();
        let (slot, keep) = (self.stage.0.tensors.get(tensor), library.table.keep);
        let (Some(slot), Some(call)) = (slot, keep) else {
            return Ok(DeviceTensor::on_host(self.take(tensor)?));
        };
        let (dtype, shape) = (slot.spec.dtype, slot.spec.shape.clone());
        let bytes = byte_count(dtype, &shape)?;
        let arena = self.arena.clone();
        let _guard = self.lock(&arena)?;
        let (mut raw, mut message) = (std::ptr::null_mut(), Message::new());
        // SAFETY: a function of the table, with what `prepare` gave; both pointers live during the call.
        let status = unsafe {
            let this = library.table.this;
            call(this, self.raw, tensor.0, &raw mut raw, message.raw())
        };
        self.check(status, &message, "did not keep a tensor")?;
        Ok(DeviceTensor {
            backend: self.id.clone(),
            dtype,
            shape,
            handle: Arc::new(KeptTensor::new(raw, library, bytes)),
        })
    }
}
