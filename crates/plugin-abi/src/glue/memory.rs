//! Blocks of host memory, in which Kilim plans the tensors of stages.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::{Opened, guarded};
use crate::guest::{Failure, Guest, Mapping, Memory};
use crate::{self as abi, Status};

/// The alignment of blocks in bytes: the interface's default, which [`super::describe`] leaves as it is.
const ALIGNMENT: usize = 64;

/// The size of a host's table that has what concerns memory.
pub const KNOWN_FROM: usize = offset_of!(abi::Backend, tensor_bytes) + size_of::<usize>();

/// Initialised memory, its beginning a multiple of 8 bytes, and of [`ALIGNMENT`] where neither the guest nor the user
/// brings it.
pub struct Block {
    start: NonNull<u8>,
    bytes: usize,
    owner: Owner,
}

// SAFETY: the memory belongs to no thread, and what a guest brings can be sent.
unsafe impl Send for Block {}
// SAFETY: shared, a block only tells its address and its size; what a guest brought is not used before it is dropped.
unsafe impl Sync for Block {}

enum Owner {
    Heap(Layout),
    /// Only there to be dropped: `start` is what it gave.
    Guest {
        _memory: Memory,
    },
    /// Memory of the user's that a guest has imported, only there to be dropped.
    Mapped {
        _mapping: Mapping,
    },
    /// Host memory of the user's, who keeps it.
    User,
}

impl Block {
    /// Memory of the device, or of the host where the guest brings none.
    pub fn of<G: Guest>(guest: &G, bytes: usize) -> Result<Block, Failure> {
        let Some(mut memory) = guest.allocate(bytes)? else {
            return Block::zeroed(bytes);
        };
        let words = (*memory).as_mut();
        let (room, start) = (size_of_val(words), NonNull::from(words).cast());
        if room < bytes {
            let text = format!("the device gave {room} bytes where {bytes} were asked for");
            return Err(Failure::device(text));
        }
        Ok(Block {
            start,
            bytes: room,
            owner: Owner::Guest { _memory: memory },
        })
    }

    pub fn zeroed(bytes: usize) -> Result<Block, Failure> {
        let failure = || Failure::limit(format!("there is no memory for {bytes} bytes"));
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| failure())?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(failure)?;
        Ok(Block {
            start,
            bytes: layout.size(),
            owner: Owner::Heap(layout),
        })
    }

    /// Host memory of the user's, of `bytes` bytes.
    pub fn of_user(start: *mut u8, bytes: usize) -> Result<Block, Failure> {
        let start = NonNull::new(start).filter(|start| start.cast::<u64>().is_aligned());
        Ok(Block {
            start: start.ok_or_else(|| {
                Failure::invalid("the memory does not begin at a multiple of 8 bytes")
            })?,
            bytes,
            owner: Owner::User,
        })
    }

    /// What a guest has imported, of at least `bytes` bytes.
    pub fn mapped(mut mapping: Mapping, bytes: usize) -> Result<Block, Failure> {
        let own = (*mapping).as_mut();
        let (room, start) = (own.len(), own.as_mut_ptr());
        if room < bytes {
            let text = format!("the memory has {room} bytes where {bytes} are needed");
            return Err(Failure::invalid(text));
        }
        let owner = Owner::Mapped { _mapping: mapping };
        let block = Block::of_user(start, room)?;
        Ok(Block { owner, ..block })
    }

    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Owner::Heap(layout) = self.owner {
            // SAFETY: allocated with this layout, freed once.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

pub unsafe extern "C" fn allocate<G: Guest>(
    this: *mut c_void,
    bytes: usize,
    memory: *mut *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`.
        let opened = unsafe { &*this.cast::<Opened<G>>() };
        let block = Block::of(&opened.guest, bytes).map_err(|f| (f, -1))?;
        // SAFETY: Kilim gave `memory` to be written.
        unsafe { *memory = Box::into_raw(Box::new(block)).cast() };
        Ok(())
    })
}

pub unsafe extern "C" fn release<G: Guest>(this: *mut c_void, memory: *mut c_void) {
    // SAFETY: `this` is of `create`, the box of `allocate` and released once.
    let (opened, block) = unsafe {
        (
            &*this.cast::<Opened<G>>(),
            Box::from_raw(memory.cast::<Block>()),
        )
    };
    // Kernels that were started may use it.
    if let Some(queue) = &opened.queue {
        queue.drain();
    }
    // Memory that panics while it is given back has nobody to hear it.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(block)));
}
