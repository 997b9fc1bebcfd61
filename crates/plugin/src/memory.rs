//! Blocks of a library's memory, which Kilim plans.

use std::ffi::c_void;
use std::sync::Arc;

use kilim_core::backend::{Allocator, BackendId, TensorSpec};
use kilim_core::error::unsupported;
use kilim_core::memory::ArenaMemory;
use kilim_core::{Error, ErrorCode, Result};

use crate::encode::{Arena, TensorView};
use crate::library::{Library, Message, check};

/// A block, given back to the library when it is dropped.
pub struct PluginMemory {
    pub raw: *mut c_void,
    library: Arc<Library>,
}

// SAFETY: the interface lets any thread use memory, one at a time; an arena has a lock.
unsafe impl Send for PluginMemory {}

impl Drop for PluginMemory {
    fn drop(&mut self) {
        if let Some(release) = self.library.table.release {
            // SAFETY: made by `allocate`, released once.
            unsafe { release(self.library.table.this, self.raw) };
        }
    }
}

/// Blocks that the library allocates.
pub struct PluginAllocator {
    pub id: BackendId,
    pub library: Arc<Library>,
}

impl Allocator for PluginAllocator {
    fn tensor_bytes(&self, tensor: &TensorSpec) -> usize {
        let table = &self.library.table;
        let mut arena = Arena::default();
        let told = arena.tensor(&TensorView::of(tensor));
        match (table.tensor_bytes, told) {
            // SAFETY: a function of the table; the tensor points into the arena, which lives.
            (Some(bytes), Ok(told)) => unsafe { bytes(table.this, &raw const told) },
            _ => tensor.bytes(),
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
        let table = &self.library.table;
        let Some(allocate) = table.allocate else {
            let id = &self.id;
            return Err(unsupported(format!(
                "the memory of the backend `{id}` is not planned: it allocates for itself"
            )));
        };
        let mut raw = std::ptr::null_mut();
        let mut message = Message::new();
        // SAFETY: a function of the table; all pointers live during the call.
        let status = unsafe { allocate(table.this, bytes, &raw mut raw, message.raw()) };
        let what = format!("`{}` did not allocate {bytes} bytes", self.id);
        check(status, &message, &what)?;
        if raw.is_null() {
            return Err(Error::new(ErrorCode::Device, what).with_got("no memory and no error"));
        }
        Ok(Box::new(PluginMemory {
            raw,
            library: self.library.clone(),
        }))
    }
}
