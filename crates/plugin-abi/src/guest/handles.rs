//! Memory of the user's in which kernels compute.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// What kind of handle names memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleKind {
    /// The address of host memory. The library need not import it: kernels compute there.
    Host,
    /// A file descriptor of a dma-buf.
    DmaBuf,
    /// A file descriptor of a dma-buf that the host must neither read nor write.
    ProtectedDmaBuf,
    /// An `AHardwareBuffer *`.
    HardwareBuffer,
    /// A kind of the backend's own, by its name.
    Own(&'static CStr),
}

/// A handle of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handle<'a> {
    /// A file descriptor of a dma-buf.
    DmaBuf(i32),
    /// A file descriptor of a dma-buf that the host must neither read nor write.
    ProtectedDmaBuf(i32),
    /// An `AHardwareBuffer *`.
    HardwareBuffer(NonNull<c_void>),
    /// A kind of the backend's own by its name, and what the backend knows the memory by.
    Own(&'a str, u64),
}

/// Memory of the user's that a tensor is to lie in. The handle is what its kind says while it is imported; what is needed of
/// it for longer, the library takes, by `dup` for instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserMemory<'a> {
    pub handle: Handle<'a>,
    /// The bytes of the memory before those of the tensor.
    pub offset: usize,
    /// The bytes that the tensor may use, from the offset on.
    pub bytes: usize,
}

/// Memory of the user's at addresses of the host, from the beginning of a tensor on, at a multiple of 8 bytes. It is the same memory
/// each time that it is asked for, and the library gives it back when it is dropped.
pub type Mapping = Box<dyn AsMut<[u8]> + Send>;
