//! Memory of the user's that tensors lie in: host memory, or memory of another device, by a handle.

use std::any::Any;
use std::borrow::Cow;
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::device_tensor::{DeviceHandle, DeviceTensor};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::tensor::{Tensor, byte_count};
use crate::threading::LocalFuture;

/// What kind of handle names memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Host memory, by its address.
    Host,
    /// A dma-buf of Linux or Android, by a file descriptor.
    DmaBuf,
    /// A dma-buf that the host must neither read nor write, by a file descriptor.
    ProtectedDmaBuf,
    /// A buffer of Android's, by an `AHardwareBuffer *`.
    HardwareBuffer,
    /// A kind of the backend's own, by the name that it has there.
    Own(Cow<'static, str>),
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryKind::Host => "host memory",
            MemoryKind::DmaBuf => "dma-buf",
            MemoryKind::ProtectedDmaBuf => "protected dma-buf",
            MemoryKind::HardwareBuffer => "AHardwareBuffer",
            MemoryKind::Own(name) => name,
        })
    }
}

/// A handle that names memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryHandle {
    /// The address of host memory.
    Host(NonNull<u8>),
    /// A file descriptor of a dma-buf.
    DmaBuf(i32),
    /// A file descriptor of a dma-buf that the host must neither read nor write.
    ProtectedDmaBuf(i32),
    /// An `AHardwareBuffer *`.
    HardwareBuffer(NonNull<c_void>),
    /// A kind of the backend's own by its name, and what the backend knows the memory by: a `cl_mem` or a number.
    Own(Cow<'static, str>, u64),
}

impl MemoryHandle {
    /// What kind of handle this is.
    pub fn kind(&self) -> MemoryKind {
        match self {
            MemoryHandle::Host(_) => MemoryKind::Host,
            MemoryHandle::DmaBuf(_) => MemoryKind::DmaBuf,
            MemoryHandle::ProtectedDmaBuf(_) => MemoryKind::ProtectedDmaBuf,
            MemoryHandle::HardwareBuffer(_) => MemoryKind::HardwareBuffer,
            MemoryHandle::Own(name, _) => MemoryKind::Own(name.clone()),
        }
    }

    /// The handle as a number: an address, a file descriptor, or what the backend knows the memory by.
    pub fn value(&self) -> u64 {
        match self {
            MemoryHandle::Host(start) => start.as_ptr().expose_provenance() as u64,
            MemoryHandle::HardwareBuffer(buffer) => buffer.as_ptr().expose_provenance() as u64,
            // A negative number is no descriptor: no backend is told of one.
            MemoryHandle::DmaBuf(fd) | MemoryHandle::ProtectedDmaBuf(fd) => {
                u64::from(fd.cast_unsigned())
            }
            MemoryHandle::Own(_, value) => *value,
        }
    }
}

/// A part of the user's memory that a tensor is to lie in, see [`crate::Session::import`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMemory {
    handle: MemoryHandle,
    offset: usize,
    bytes: usize,
}

// SAFETY: the memory belongs to no thread; whoever made the value says that nobody else writes it while a run uses it.
unsafe impl Send for UserMemory {}
// SAFETY: shared, the value only says where the memory is.
unsafe impl Sync for UserMemory {}

impl UserMemory {
    /// `bytes` bytes of the memory that a handle names, from `offset` on.
    ///
    /// # Safety
    /// - The handle is what its kind says, until [`crate::Session::import`] has returned. All of these bytes are there, initialised,
    ///   and may be read and written, from any thread.
    /// - Host memory stays until every tensor that was made of this value is dropped, with its clones. For other kinds the backend
    ///   holds the memory itself, and a file descriptor may be closed when it was imported. How long a handle of a kind of the
    ///   backend's own has to live, the backend says.
    /// - Nobody writes the bytes while a run reads them, and nobody else reads or writes them while a run writes them. A run uses
    ///   them from its call until [`crate::Session::wait_finish`] has resolved, or, for work on the queue of the backend
    ///   ([`crate::Session::queue`]), in the order of that queue. What one run writes overlaps nothing else that it uses.
    pub unsafe fn new(handle: MemoryHandle, offset: usize, bytes: usize) -> UserMemory {
        UserMemory {
            handle,
            offset,
            bytes,
        }
    }

    /// What names the memory.
    pub fn handle(&self) -> &MemoryHandle {
        &self.handle
    }

    /// The bytes of the memory before those of the tensor.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes that a tensor may take, from the offset on.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a dense tensor of this element type and shape may lie here.
    ///
    /// # Errors
    /// `DType` for strings; `InvalidValue` where there are less bytes than it takes, or the handle or the offset cannot be;
    /// `Limit` for a shape that is too large.
    pub fn check(&self, dtype: DType, shape: &[usize]) -> Result<()> {
        if dtype == DType::String {
            let message = "strings do not lie in memory of the user's";
            return Err(Error::new(ErrorCode::DType, message));
        }
        let wrong = |message: &str| Error::new(ErrorCode::InvalidValue, message);
        let needed = byte_count(dtype, shape)?;
        if self.bytes < needed {
            let what = format!("the memory is too small for {dtype}{shape:?}");
            return Err(wrong(&what)
                .with_expected(format!("{needed} bytes"))
                .with_got(format!("{} bytes", self.bytes)));
        }
        let end = self.offset.checked_add(self.bytes);
        if end.is_none_or(|end| end > isize::MAX as usize) {
            return Err(wrong("the memory ends behind all addresses").with_got(self.offset));
        }
        match self.handle {
            MemoryHandle::DmaBuf(fd) | MemoryHandle::ProtectedDmaBuf(fd) if fd < 0 => {
                Err(wrong("a negative number is no file descriptor").with_got(fd))
            }
            _ => Ok(()),
        }
    }
}

/// The handle of a tensor in host memory of the user's, which backends that compute there read and write in place.
pub struct InHost {
    memory: UserMemory,
    start: NonNull<u8>,
}

// SAFETY: the start is the address of `memory`, which belongs to no thread.
unsafe impl Send for InHost {}
// SAFETY: shared, the memory is only written where whoever made `memory` says that nobody else uses it.
unsafe impl Sync for InHost {}

impl InHost {
    /// A tensor in host memory. Nothing is copied.
    ///
    /// # Errors
    /// Those of [`UserMemory::check`]; `Unsupported` for memory that is not the host's; `InvalidValue` where its address is not
    /// one for elements of this type.
    pub fn tensor(memory: &UserMemory, dtype: DType, shape: &[usize]) -> Result<DeviceTensor> {
        memory.check(dtype, shape)?;
        let kind = memory.handle.kind();
        let MemoryHandle::Host(base) = memory.handle else {
            let message = format!("a {kind} is no host memory");
            return Err(Error::new(ErrorCode::Unsupported, message));
        };
        let start = NonNull::new(base.as_ptr().wrapping_add(memory.offset));
        let aligned = start.filter(|start| start.addr().get().is_multiple_of(dtype.size()));
        let start = aligned.ok_or_else(|| {
            let message = format!("host memory begins where no {dtype} may lie");
            Error::new(ErrorCode::InvalidValue, message)
                .with_expected(format!("an address at a multiple of {}", dtype.size()))
        })?;
        Ok(DeviceTensor {
            backend: DeviceTensor::HOST,
            dtype,
            shape: shape.to_vec(),
            handle: Arc::new(InHost {
                memory: memory.clone(),
                start,
            }),
        })
    }

    /// The handle of a tensor in host memory of the user's; `None` for every other tensor.
    fn of(tensor: &DeviceTensor) -> Option<&InHost> {
        let handle: &dyn Any = &*tensor.handle;
        handle.downcast_ref()
    }

    /// Where the elements of a tensor in host memory of the user's are, and how many bytes; `None` for every other tensor.
    pub fn place(tensor: &DeviceTensor) -> Option<(NonNull<u8>, usize)> {
        InHost::of(tensor)?.part(tensor).ok()
    }

    /// A copy of a tensor in host memory of the user's.
    ///
    /// # Errors
    /// `State` for every other tensor, `Limit` where memory is short.
    pub fn copied(tensor: &DeviceTensor) -> Result<Tensor> {
        let other = || Error::new(ErrorCode::State, "a tensor is in no memory of the user's");
        InHost::of(tensor).ok_or_else(other)?.copy(tensor)
    }

    /// The part of the memory that a tensor takes, which anybody may have made with this handle.
    fn part(&self, tensor: &DeviceTensor) -> Result<(NonNull<u8>, usize)> {
        self.memory.check(tensor.dtype, &tensor.shape)?;
        if !self.start.addr().get().is_multiple_of(tensor.dtype.size()) {
            let message = "a tensor of another element type was imported";
            return Err(Error::new(ErrorCode::DType, message));
        }
        Ok((self.start, byte_count(tensor.dtype, &tensor.shape)?))
    }

    fn copy(&self, tensor: &DeviceTensor) -> Result<Tensor> {
        let (start, bytes) = self.part(tensor)?;
        // SAFETY: `memory` has so many bytes, initialised, and whoever made it says that nobody writes them now.
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), bytes) };
        Tensor::from_raw(tensor.dtype, &tensor.shape, bytes)
    }
}

impl DeviceHandle for InHost {
    fn read<'a>(&'a self, tensor: &'a DeviceTensor) -> LocalFuture<'a, Result<Tensor>> {
        Box::pin(std::future::ready(self.copy(tensor)))
    }

    fn is_users(&self) -> bool {
        true
    }

    fn write(&self, tensor: &DeviceTensor, data: &Tensor) -> Result<()> {
        let (start, bytes) = self.part(tensor)?;
        let from = data.read()?;
        if from.len() != bytes {
            let message = "a tensor of another size is written";
            return Err(Error::new(ErrorCode::Shape, message));
        }
        // SAFETY: `memory` has so many bytes, and whoever made it says that nobody else uses them now. Elements of a tensor of
        // Kilim's lie elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), start.as_ptr(), bytes) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &mut [u32], offset: usize, bytes: usize) -> UserMemory {
        let start = NonNull::from(words).cast();
        // SAFETY: tests import no more than there is, and drop it before the words.
        unsafe { UserMemory::new(MemoryHandle::Host(start), offset, bytes) }
    }

    #[test]
    fn memory_that_no_tensor_fits_is_refused() {
        let mut words = [0; 4];
        let code = |memory: UserMemory, dtype: DType, shape: &[usize]| {
            InHost::tensor(&memory, dtype, shape)
                .map(drop)
                .map_err(|e| e.code())
        };
        let invalid = Err(ErrorCode::InvalidValue);
        assert_eq!(code(of(&mut words, 4, 12), DType::I32, &[3]), Ok(()));
        assert_eq!(code(of(&mut words, 4, 11), DType::I32, &[3]), invalid);
        assert_eq!(code(of(&mut words, 2, 12), DType::I32, &[3]), invalid);
        assert_eq!(
            code(of(&mut words, usize::MAX, 12), DType::I32, &[3]),
            invalid
        );
        assert_eq!(
            code(of(&mut words, 0, 16), DType::String, &[1]),
            Err(ErrorCode::DType)
        );
        let huge = [usize::MAX, 4];
        assert_eq!(
            code(of(&mut words, 0, 16), DType::U8, &huge),
            Err(ErrorCode::Limit)
        );
        // SAFETY: nothing is imported.
        let closed = unsafe { UserMemory::new(MemoryHandle::DmaBuf(-1), 0, 16) };
        assert_eq!(
            closed.check(DType::U8, &[1]).unwrap_err().code(),
            ErrorCode::InvalidValue
        );
    }

    #[test]
    fn elements_are_read_where_they_are() {
        let mut words = [7, 8, 9];
        let memory = of(&mut words, 4, 8);
        let tensor = InHost::tensor(&memory, DType::U32, &[2]).unwrap();
        let read = || pollster::block_on(tensor.read()).unwrap();
        assert_eq!(read().as_slice::<u32>().unwrap(), [8, 9]);
        let data = Tensor::from_slice(&[2], &[1u32, 2]).unwrap();
        tensor.handle.write(&tensor, &data).unwrap();
        assert_eq!(read(), data);
        let larger = DeviceTensor {
            shape: vec![3],
            ..tensor.clone()
        };
        assert!(
            pollster::block_on(larger.read()).is_err(),
            "there are two elements"
        );
        assert_eq!(InHost::place(&larger), None);
        drop((tensor, larger));
        assert_eq!(words, [7, 1, 2]);
    }
}
