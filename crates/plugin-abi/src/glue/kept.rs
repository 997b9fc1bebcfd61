//! Tensors that stay on the device when the run of their stage is over.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::memory::Block;
use super::program::{Executable, failed};
use super::{Opened, guarded};
use crate::guest::{Call, Guest};
use crate::{self as abi, Status};

/// The elements of a tensor in a block of their own.
pub struct Kept {
    pub block: Block,
    pub bytes: usize,
    /// Whether the block is memory of the user's.
    pub is_users: bool,
}

pub unsafe extern "C" fn keep<G: Guest>(
    this: *mut c_void,
    executable: *mut c_void,
    tensor: usize,
    kept: *mut *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the executable of `prepare`.
        let (opened, executable) = unsafe {
            (
                &*this.cast::<Opened<G>>(),
                &*executable.cast::<Executable>(),
            )
        };
        let program = executable.idle()?;
        let root = program.roots.get(tensor).copied();
        let root = root.ok_or_else(|| failed("the stage has no such tensor"))?;
        // SAFETY: nothing else runs now, and the elements are only read.
        let from = unsafe { program.data(root) }?;
        let bytes = from.bytes().len();
        let block = Block::of(&opened.guest, bytes).map_err(|f| (f, -1))?;
        // SAFETY: the block is fresh, and large enough.
        unsafe {
            let to = block.start().as_ptr();
            std::ptr::copy_nonoverlapping(from.bytes().as_ptr(), to, bytes);
        }
        let is_users = false;
        let made = Kept {
            block,
            bytes,
            is_users,
        };
        // SAFETY: Kilim gave `kept` to be written.
        unsafe { *kept = Box::into_raw(Box::new(made)).cast() };
        opened.hear(Call::Keep);
        Ok(())
    })
}

pub unsafe extern "C" fn use_kept(
    _this: *mut c_void,
    executable: *mut c_void,
    tensor: usize,
    kept: *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`, the tensor of `keep`.
        let (executable, kept) =
            unsafe { (&*executable.cast::<Executable>(), &*kept.cast::<Kept>()) };
        let mut program = executable.idle()?;
        if kept.is_users {
            return program.lend(tensor, kept);
        }
        if !program.is_writable(tensor) {
            return Err(failed("a tensor is written that is not the device's"));
        }
        // SAFETY: nothing else runs now.
        let mut to = unsafe { program.whole(tensor, kept.bytes) }?;
        let to = to.bytes_mut().as_mut_ptr();
        // SAFETY: both have so many bytes, and are different blocks.
        unsafe { std::ptr::copy_nonoverlapping(kept.block.start().as_ptr(), to, kept.bytes) };
        Ok(())
    })
}

pub unsafe extern "C" fn read_kept(
    _this: *mut c_void,
    kept: *mut c_void,
    data: *mut c_void,
    bytes: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the tensor is of `keep`.
        let kept = unsafe { &*kept.cast::<Kept>() };
        if kept.bytes != bytes {
            return Err(failed("a tensor has another size than was kept"));
        }
        // SAFETY: Kilim gave `data` to be written, with room for `bytes` bytes.
        unsafe { std::ptr::copy_nonoverlapping(kept.block.start().as_ptr(), data.cast(), bytes) };
        Ok(())
    })
}

pub unsafe extern "C" fn release_kept(_this: *mut c_void, kept: *mut c_void) {
    // SAFETY: the box of `keep`, released once.
    let kept = unsafe { Box::from_raw(kept.cast::<Kept>()) };
    // Memory that panics while it is given back has nobody to hear it.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(kept)));
}
