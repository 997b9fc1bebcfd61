//! Files of the user's, which are mapped.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::ptr::NonNull;

use kilim_plugin_abi::guest::{Failure, Mapping, Result};

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        use_: c_int,
        how: c_int,
        fd: c_int,
        from: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, bytes: usize) -> c_int;
}

/// `PROT_READ | PROT_WRITE`.
const READ_AND_WRITE: c_int = 3;
/// `MAP_SHARED`.
const SHARED: c_int = 1;

/// A file from its beginning to the end of a tensor, which begins at `offset`.
struct Map {
    start: NonNull<u8>,
    offset: usize,
    end: usize,
}

// SAFETY: a map belongs to no thread.
unsafe impl Send for Map {}

impl AsMut<[u8]> for Map {
    fn as_mut(&mut self) -> &mut [u8] {
        let bytes = self.end - self.offset;
        // SAFETY: so many bytes are mapped, and Kilim's user does not use them while a run does.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(self.offset), bytes) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped with this size, and given back once.
        unsafe { munmap(self.start.as_ptr().cast(), self.end) };
    }
}

/// Maps `bytes` bytes of a file from `offset` on.
pub fn map(fd: i32, offset: usize, bytes: usize) -> Result<Mapping> {
    // SAFETY: the descriptor is the user's, who keeps it open during the call; it is not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let length = file
        .metadata()
        .map_err(|e| Failure::invalid(e.to_string()))?
        .len();
    let end = offset.saturating_add(bytes);
    if length < end as u64 {
        return Err(Failure::invalid(format!("the file has {length} bytes")));
    }
    // SAFETY: a new map of a file that is long enough.
    let start = unsafe { mmap(std::ptr::null_mut(), end, READ_AND_WRITE, SHARED, fd, 0) };
    if start.addr() == usize::MAX {
        return Err(Failure::device("the file cannot be mapped"));
    }
    let start = NonNull::new(start.cast()).ok_or_else(|| Failure::device("an empty map"))?;
    Ok(Box::new(Map { start, offset, end }))
}
