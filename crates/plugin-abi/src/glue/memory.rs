//! Blocks of host memory, in which Kilim plans the tensors of stages.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::NonNull;

use super::guarded;
use crate::guest::Failure;
use crate::{self as abi, Status};

/// The alignment of blocks in bytes: the interface's default, which [`super::describe`] leaves as it is.
const ALIGNMENT: usize = 64;

/// The size of a host's table that has what concerns memory.
pub const KNOWN_FROM: usize = offset_of!(abi::Backend, tensor_bytes) + size_of::<usize>();

/// Initialised memory, its beginning a multiple of [`ALIGNMENT`].
pub struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

impl Block {
    pub fn zeroed(bytes: usize) -> Result<Block, Failure> {
        let failure = || Failure {
            status: abi::LIMIT,
            text: format!("there is no memory for {bytes} bytes"),
        };
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| failure())?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(failure)?;
        Ok(Block { start, layout })
    }

    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

pub unsafe extern "C" fn allocate(
    _this: *mut c_void,
    bytes: usize,
    memory: *mut *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        let block = Block::zeroed(bytes).map_err(|f| (f, -1))?;
        // SAFETY: Kilim gave `memory` to be written.
        unsafe { *memory = Box::into_raw(Box::new(block)).cast() };
        Ok(())
    })
}

pub unsafe extern "C" fn release(_this: *mut c_void, memory: *mut c_void) {
    // SAFETY: the box of `allocate`, released once.
    drop(unsafe { Box::from_raw(memory.cast::<Block>()) });
}
