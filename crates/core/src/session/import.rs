//! Memory of the user's that a session's runs read and write, and command queues of its backends.

use std::sync::Arc;

use super::{Handle, Keep, Session};
use crate::backend::{
    Backend, BackendContext, BackendId, CommandQueue, MemoryKind, TensorSpec, UserMemory,
};
use crate::builtin::Port;
use crate::device_tensor::DeviceTensor;
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result, unsupported};
use crate::fact::Fact;
use crate::graph::ValueId;
use crate::ids::BackendIndex;

impl Session {
    /// A tensor in memory of the user's, for a backend of the session. As an input ([`crate::Datum::Device`]) it is read where it
    /// is, and an output goes there with [`Keep::with_memory`]; in both cases nothing passes over the host, as long as this backend
    /// reads or writes the value. A run reads the elements that are there when it does its work. The tensor needs the session no
    /// more, and may be given to others that have the same backend.
    ///
    /// # Errors
    /// `NoBackend` where the session has no such backend; `Unsupported` where it does not take memory of this kind, or cannot use
    /// this one; `InvalidValue` where the memory is too small, or its handle or offset cannot be; `DType` for strings; `Device`
    /// where the device fails.
    pub fn import(
        &mut self,
        backend: &BackendId,
        dtype: DType,
        shape: &[usize],
        memory: &UserMemory,
    ) -> Result<DeviceTensor> {
        let b = self.index_of(backend)?;
        let kind = memory.handle().kind();
        if !self.shared.backends[b].memory_kinds().contains(&kind) {
            return Err(self.refuse(b, &kind));
        }
        memory.check(dtype, shape)?;
        self.shared.contexts[b].import(&TensorSpec::new(dtype, shape), memory)
    }

    /// The command queue of a backend. What is put there after a run comes after it, and what was put there before a run comes
    /// before, without waiting.
    ///
    /// # Errors
    /// `NoBackend` where the session has no such backend, `Unsupported` where it knows no queues, `Device` where its device fails.
    pub fn queue(&self, backend: &BackendId) -> Result<CommandQueue> {
        let b = self.index_of(backend)?;
        let queue = self.shared.contexts[b].queue()?;
        queue.ok_or_else(|| unsupported(format!("the backend `{backend}` knows no command queues")))
    }

    fn index_of(&self, backend: &BackendId) -> Result<BackendIndex> {
        let backends = &self.shared.backends;
        let found = backends.position(|b| b.describe().id == *backend);
        found.ok_or_else(|| {
            let ids: Vec<_> = backends.iter().map(|b| b.describe().id.as_str()).collect();
            let message = format!("the session has no backend `{backend}`");
            Error::new(ErrorCode::NoBackend, message).with_known(backend.as_str(), &ids)
        })
    }

    /// The backend does not take memory of this kind.
    fn refuse(&self, backend: BackendIndex, kind: &MemoryKind) -> Error {
        let backends = &self.shared.backends;
        let own: Vec<_> = backends[backend]
            .memory_kinds()
            .iter()
            .map(ToString::to_string)
            .collect();
        let takes = backends.iter().filter(|b| b.memory_kinds().contains(kind));
        let takes: Vec<_> = takes.map(|b| format!("`{}`", b.describe().id)).collect();
        let id = &backends[backend].describe().id;
        let message = format!("the backend `{id}` does not take memory of this kind");
        let error = unsupported(message)
            .with_got(kind)
            .with_expected(match own.is_empty() {
                true => "none".to_string(),
                false => own.join(", "),
            });
        error.with_hint(match takes.is_empty() {
            true => "no backend of the session takes it".to_string(),
            false => format!("taken by {}", takes.join(", ")),
        })
    }
}

/// # Errors
/// `Unsupported` where a context does not use the queue that it was given.
pub(super) fn check_queue(
    backend: &Arc<dyn Backend>,
    given: Option<CommandQueue>,
    context: &dyn BackendContext,
) -> Result<()> {
    let id = &backend.describe().id;
    match given.is_none() || context.queue()? == given {
        true => Ok(()),
        false => Err(
            unsupported(format!("the backend `{id}` takes no command queue"))
                .with_hint("leave the `queue` of its options out"),
        ),
    }
}

fn wrong(name: &str, what: &str) -> Error {
    let message = format!("the memory for the output `{name}` {what}");
    Error::new(ErrorCode::InvalidValue, message).with_input(name)
}

/// The values of a graph that go into memory of the user's. `outputs` are all of the model's.
///
/// # Errors
/// `InvalidValue` for a tensor that was not imported, that is there for two outputs, or that is an input of the run.
pub(super) fn places<'a>(
    outputs: impl Iterator<Item = (&'a Port, &'a ValueId)> + Clone,
    inputs: &[Handle],
    keep: &Keep,
) -> Result<Vec<(ValueId, DeviceTensor)>> {
    let mut places: Vec<(ValueId, DeviceTensor)> = Vec::new();
    for (name, memory) in keep.memory() {
        let same = |other: &DeviceTensor| Arc::ptr_eq(&other.handle, &memory.handle);
        if !memory.handle.is_users() {
            let hint = "make a tensor of memory of yours by `Session::import`";
            return Err(wrong(name, "is a tensor that was not imported").with_hint(hint));
        }
        if places.iter().any(|(_, other)| same(other)) {
            return Err(wrong(name, "is there for two outputs"));
        }
        let is_read = |input: &Handle| matches!(input, Handle::Device(d) if same(d));
        if inputs.iter().any(is_read) {
            return Err(wrong(name, "is an input of the run"));
        }
        let mut outputs = outputs.clone();
        if let Some((_, v)) = outputs.find(|(port, _)| port.name == *name) {
            places.push((*v, memory.clone()));
        }
    }
    Ok(places)
}

/// Has the results of a run be where they are wanted: outputs in memory of the user's, if all of them fit, and what the session
/// keeps behind them anywhere else, since the user may write that memory. What a backend has not put there itself is brought to the
/// host and written.
///
/// # Errors
/// `DType` and `Shape` where memory is for another tensor; what reading and writing say.
pub(super) async fn deliver(outputs: &[Port], results: &mut [Handle], keep: &Keep) -> Result<()> {
    let mut left = Vec::new();
    for (name, memory) in keep.memory() {
        let named = outputs.iter().zip(&*results).enumerate();
        for (i, (_, result)) in named.filter(|(_, (port, _))| port.name == *name) {
            if !matches!(result, Handle::Device(d) if d == memory) {
                fits(name, memory, &result.spec()?)?;
                left.push((i, memory));
            }
        }
    }
    for (i, memory) in left {
        let result = results[i].clone().into_host().await?;
        memory.handle.write(memory, &result)?;
        results[i] = Handle::Device(memory.clone());
    }
    for value in results.iter_mut().skip(outputs.len()) {
        if matches!(value, Handle::Device(d) if d.handle.is_users()) {
            *value = Handle::Host(value.clone().into_host().await?);
        }
    }
    Ok(())
}

/// # Errors
/// `DType` and `Shape` where memory is for another tensor than this.
fn fits(name: &str, memory: &DeviceTensor, spec: &TensorSpec) -> Result<()> {
    let code = match () {
        _ if memory.dtype != spec.dtype => ErrorCode::DType,
        _ if memory.shape != spec.shape => ErrorCode::Shape,
        _ => return Ok(()),
    };
    let message = format!("the memory for the output `{name}` is for another tensor");
    Err(Error::new(code, message)
        .with_input(name)
        .with_expected(Fact::fixed(spec.dtype, &spec.shape))
        .with_got(Fact::fixed(memory.dtype, &memory.shape)))
}
