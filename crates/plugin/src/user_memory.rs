//! Memory of the user's in which a library has tensors, and the command queues of its contexts.

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::{
    BackendId, CommandQueue, DeviceTensor, InHost, Memory, MemoryHandle, MemoryKind, TensorSpec,
    UserMemory,
};
use kilim_core::error::unsupported;
use kilim_plugin_abi as abi;

use crate::context::ContextHandle;
use crate::encode::{Arena, TensorView, c_text};
use crate::kept::KeptTensor;
use crate::library::{Library, Message, check, owned};

/// The kinds of memory that a library says that it takes; `None` where one of them cannot be, or nothing imports them.
pub fn kinds(
    told: &abi::Description,
    memory: Memory,
    library: &Library,
) -> Option<Vec<MemoryKind>> {
    let list = match told.handle_kinds.is_null() {
        true => &[],
        // SAFETY: the backend gives as many kinds as it says.
        false => unsafe { std::slice::from_raw_parts(told.handle_kinds, told.handle_kind_count) },
    };
    let kind = |told: &abi::HandleKind| {
        Some(match told.kind {
            abi::HANDLE_HOST => MemoryKind::Host,
            abi::HANDLE_DMA_BUF => MemoryKind::DmaBuf,
            abi::HANDLE_DMA_BUF_PROTECTED => MemoryKind::ProtectedDmaBuf,
            abi::HANDLE_HARDWARE_BUFFER => MemoryKind::HardwareBuffer,
            abi::HANDLE_OWN => {
                // SAFETY: strings of the interface end with a zero.
                let name = unsafe { owned(told.name) }.filter(|name| !name.is_empty())?;
                MemoryKind::Own(Cow::Owned(name))
            }
            _ => return None,
        })
    };
    let mut kinds: Vec<_> = list.iter().map(kind).collect::<Option<_>>()?;
    if !kinds.is_empty() && library.table.import_memory.is_none() {
        return None;
    }
    // What lies on the host is attached.
    if memory == Memory::Host && !kinds.contains(&MemoryKind::Host) {
        kinds.push(MemoryKind::Host);
    }
    Some(kinds)
}

/// The form of a kind in the interface; `name` has the name of a kind of the backend's own.
fn told(kind: &MemoryKind, name: &CStr) -> abi::HandleKind {
    let (kind, name) = match kind {
        MemoryKind::Host => (abi::HANDLE_HOST, std::ptr::null()),
        MemoryKind::DmaBuf => (abi::HANDLE_DMA_BUF, std::ptr::null()),
        MemoryKind::ProtectedDmaBuf => (abi::HANDLE_DMA_BUF_PROTECTED, std::ptr::null()),
        MemoryKind::HardwareBuffer => (abi::HANDLE_HARDWARE_BUFFER, std::ptr::null()),
        MemoryKind::Own(_) => (abi::HANDLE_OWN, name.as_ptr()),
    };
    abi::HandleKind { kind, name }
}

impl ContextHandle {
    /// A tensor in memory of the user's. Host memory of a library that computes there is attached when it is used.
    ///
    /// # Errors
    /// What the library says, and `Unsupported` where it imports nothing.
    pub fn import(
        self: &Arc<Self>,
        (id, computes): (&BackendId, Memory),
        tensor: &TensorSpec,
        memory: &UserMemory,
    ) -> Result<DeviceTensor> {
        let on_host = matches!(memory.handle(), MemoryHandle::Host(_));
        if on_host && computes == Memory::Host {
            return InHost::tensor(memory, tensor.dtype, &tensor.shape);
        }
        let table = &self.library.table;
        let Some(import) = table.import_memory else {
            return Err(unsupported(format!("`{id}` imports no memory")));
        };
        let mut arena = Arena::default();
        let view = arena
            .tensor(&TensorView::of(tensor))
            .map_err(|r| unsupported(r.reason))?;
        let kind = memory.handle().kind();
        let name = match &kind {
            MemoryKind::Own(name) => c_text(name),
            _ => c_text(""),
        };
        let handle = abi::Handle {
            kind: told(&kind, &name),
            value: memory.handle().value(),
            offset: memory.offset(),
            bytes: memory.bytes(),
        };
        let (mut raw, mut message) = (std::ptr::null_mut(), Message::new());
        // SAFETY: a function of the table, with what `create_context` gave; all pointers live during the call. Whoever made
        // `memory` says that the handle is one.
        let status = unsafe {
            import(
                table.this,
                self.raw(),
                &raw const view,
                &raw const handle,
                &raw mut raw,
                message.raw(),
            )
        };
        let what = format!("`{id}` did not import a {kind}");
        check(status, &message, &what)?;
        Ok(DeviceTensor {
            backend: id.clone(),
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            handle: Arc::new(KeptTensor::imported(
                raw,
                self.library.clone(),
                tensor.bytes(),
            )),
        })
    }

    /// The command queue of the context; `None` where the library knows none.
    ///
    /// # Errors
    /// What the library says where the device fails.
    pub fn queue(&self, id: &BackendId) -> Result<Option<CommandQueue>> {
        let table = &self.library.table;
        let Some(queue) = table.queue else {
            return Ok(None);
        };
        let (mut handle, mut message) = (0, Message::new());
        // SAFETY: a function of the table, with what `create_context` gave; both pointers live during the call.
        let status = unsafe { queue(table.this, self.raw(), &raw mut handle, message.raw()) };
        if status == abi::UNSUPPORTED {
            return Ok(None);
        }
        check(status, &message, &format!("`{id}` did not tell its queue"))?;
        // SAFETY: the library says that this is its queue, which lives as long as the context.
        Ok(Some(unsafe { CommandQueue::new(handle) }))
    }
}
