//! Tensors that stay on a library's device.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use kilim_core::backend::{DeviceHandle, DeviceTensor, LocalFuture};
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{Error, ErrorCode, Result, Tensor};

use crate::library::{Library, Message, check};

/// What `keep` or `import_memory` gave; given back to the library with the last clone of its [`DeviceTensor`].
struct Raw(*mut c_void);

// SAFETY: the interface lets any thread use a kept tensor, one at a time; a lock sees to that.
unsafe impl Send for Raw {}

/// The handle of a [`DeviceTensor`] on a library's device.
pub struct KeptTensor {
    raw: Mutex<Raw>,
    library: Arc<Library>,
    /// How many bytes it has.
    bytes: usize,
    /// Whether `import_memory` gave it.
    is_users: bool,
}

impl KeptTensor {
    /// Takes over what `keep` of the library gave for a tensor of so many bytes.
    pub fn new(raw: *mut c_void, library: Arc<Library>, bytes: usize) -> KeptTensor {
        KeptTensor {
            raw: Mutex::new(Raw(raw)),
            library,
            bytes,
            is_users: false,
        }
    }

    /// Takes over what `import_memory` of the library gave for a tensor of so many bytes.
    pub fn imported(raw: *mut c_void, library: Arc<Library>, bytes: usize) -> KeptTensor {
        let is_users = true;
        KeptTensor {
            raw: Mutex::new(Raw(raw)),
            library,
            bytes,
            is_users,
        }
    }

    /// # Errors
    /// `State` for a tensor that somebody has made of this handle, and that has another number of bytes.
    fn check(&self, tensor: &DeviceTensor) -> Result<()> {
        match byte_count(tensor.dtype, &tensor.shape)? == self.bytes {
            true => Ok(()),
            false => {
                let message = "a tensor has more or less bytes than what is kept";
                Err(Error::new(ErrorCode::State, message))
            }
        }
    }

    /// The handle of a tensor that `library` keeps; `None` for one of any other backend.
    pub fn of<'a>(tensor: &'a DeviceTensor, library: &Arc<Library>) -> Option<&'a KeptTensor> {
        let handle: &dyn std::any::Any = &*tensor.handle;
        let kept: &KeptTensor = handle.downcast_ref()?;
        let own = Arc::ptr_eq(&kept.library, library) && kept.check(tensor).is_ok();
        own.then_some(kept)
    }

    /// Calls `work` with the library's name for the tensor, while nobody else uses it.
    pub fn with<T>(&self, work: impl FnOnce(*mut c_void) -> T) -> T {
        work(self.raw.lock().unwrap_or_else(PoisonError::into_inner).0)
    }

    fn bring(&self, tensor: &DeviceTensor) -> Result<Tensor> {
        self.check(tensor)?;
        let mut bytes = AlignedBytes::zeroed(self.bytes)?;
        let table = &self.library.table;
        let Some(read) = table.read_kept else {
            return Err(Error::new(ErrorCode::State, "the backend keeps no tensors"));
        };
        let room = bytes.as_mut_slice();
        let mut message = Message::new();
        let status = self.with(|raw| {
            let (to, length) = (room.as_mut_ptr().cast(), room.len());
            // SAFETY: a function of the table, with what `keep` gave; there are as many bytes as it is told.
            unsafe { read(table.this, raw, to, length, message.raw()) }
        });
        let what = format!("`{}` did not give a tensor that it keeps", tensor.backend);
        check(status, &message, &what)?;
        Tensor::from_bytes(tensor.dtype, &tensor.shape, Arc::new(bytes))
    }
}

impl DeviceHandle for KeptTensor {
    fn read<'a>(&'a self, tensor: &'a DeviceTensor) -> LocalFuture<'a, Result<Tensor>> {
        Box::pin(std::future::ready(self.bring(tensor)))
    }

    fn is_users(&self) -> bool {
        self.is_users
    }

    fn write(&self, tensor: &DeviceTensor, data: &Tensor) -> Result<()> {
        let table = &self.library.table;
        let Some(write) = table.write_kept.filter(|_| self.is_users) else {
            let message = "a tensor is written that is in no memory of the user's";
            return Err(Error::new(ErrorCode::State, message));
        };
        self.check(tensor)?;
        let bytes = data.read()?;
        if bytes.len() != self.bytes {
            let message = "a tensor of another size is written";
            return Err(Error::new(ErrorCode::Shape, message));
        }
        let mut message = Message::new();
        let status = self.with(|raw| {
            let (from, length) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: a function of the table, with what `import_memory` gave; there are as many bytes as it is told.
            unsafe { write(table.this, raw, from, length, message.raw()) }
        });
        let what = format!("`{}` did not write memory of the user's", tensor.backend);
        check(status, &message, &what)
    }
}

impl Drop for KeptTensor {
    fn drop(&mut self) {
        let table = &self.library.table;
        if let Some(release) = table.release_kept {
            // SAFETY: made by `keep` or `import_memory`, released once.
            self.with(|raw| unsafe { release(table.this, raw) });
        }
    }
}
