//! Memory of tests in which tensors lie. A file in memory stands for a dma-buf, which not every machine can make: to a device that
//! maps its memory, both are the same.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use kilim::{DType, Datum, DeviceTensor, Keep, MemoryHandle, UserMemory};

use crate::*;

unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
}

/// A file in memory with these bytes.
pub fn memory_file(bytes: usize) -> File {
    let name: &CStr = c"kilim test";
    // SAFETY: the name ends with a zero; a descriptor that is given is this file's alone.
    let file = unsafe {
        let fd = memfd_create(name.as_ptr(), 0);
        assert!(fd >= 0, "there are no files in memory");
        File::from_raw_fd(fd)
    };
    file.set_len(bytes as u64).unwrap();
    file
}

/// Writes floats at a byte of a file.
pub fn put(file: &File, offset: u64, values: &[f32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    file.write_all_at(&bytes, offset).unwrap();
}

/// Reads floats at a byte of a file.
pub fn get(file: &File, offset: u64, count: usize) -> Vec<f32> {
    let mut bytes = vec![0; 4 * count];
    file.read_exact_at(&mut bytes, offset).unwrap();
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_ne_bytes(*word)).collect()
}

/// Memory of a test, which uses it as `UserMemory` says.
pub fn part(handle: MemoryHandle, offset: usize, bytes: usize) -> UserMemory {
    // SAFETY: the tests of these modules keep host memory longer than its tensors, read and write it between runs, and use none
    // that a run of theirs writes; a library refuses what is no file of that size.
    unsafe { UserMemory::new(handle, offset, bytes) }
}

/// Bytes of a file.
pub fn in_file(file: &File, offset: usize, bytes: usize) -> UserMemory {
    part(MemoryHandle::DmaBuf(file.as_raw_fd()), offset, bytes)
}

/// Host memory of a test.
#[repr(align(8))]
pub struct Words(pub [f32; 6]);

/// Three floats in memory of a test.
pub fn import(session: &mut Session, id: &str, memory: &UserMemory) -> Result<DeviceTensor> {
    session.import(&BackendId::from(id), DType::F32, &[3], memory)
}

/// A run whose output of this name goes there.
pub fn into(output: &str, memory: &DeviceTensor) -> RunOptions {
    RunOptions {
        keep: Keep::default().with_memory(output, memory.clone()),
        ..RunOptions::default()
    }
}

/// A run on an input `x`.
pub fn run_on(
    session: &mut Session,
    x: impl Into<Datum>,
    options: &RunOptions,
) -> Result<Vec<(String, Datum)>> {
    pollster::block_on(session.run_data(&[("x", x.into())], options))
}

/// The elements of a tensor that is anywhere.
pub fn bring(tensor: &DeviceTensor) -> Vec<f32> {
    let read = pollster::block_on(tensor.read()).unwrap();
    read.as_slice::<f32>().unwrap().to_vec()
}
