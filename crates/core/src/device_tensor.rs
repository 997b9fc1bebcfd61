//! Tensors that stay where they were computed.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::ids::BackendId;
use crate::tensor::Tensor;
use crate::threading::{LocalFuture, MaybeSend, MaybeSync};

/// A tensor that stays on a device: between stages, and between runs that keep it
/// ([`crate::RunOptions::keep`]). It does not need the session that made it. Cloning shares the elements; their memory
/// is given back with the last clone.
#[derive(Clone)]
pub struct DeviceTensor {
    /// Where it is; [`DeviceTensor::HOST`] for host memory.
    pub backend: BackendId,
    pub dtype: DType,
    /// The dimensions, the outermost first.
    pub shape: Vec<usize>,
    /// What the backend keeps; it downcasts it.
    pub handle: Arc<dyn DeviceHandle>,
}

/// What a backend keeps in a [`DeviceTensor`].
pub trait DeviceHandle: Any + MaybeSend + MaybeSync {
    /// Brings the elements of `tensor`, which has this handle, to the host.
    ///
    /// # Errors
    /// `Device` where the device is gone or fails, `Limit` where memory is short.
    fn read<'a>(&'a self, tensor: &'a DeviceTensor) -> LocalFuture<'a, Result<Tensor>>;

    /// Whether the elements lie in memory of the user's ([`crate::Session::import`]), which a run may write an output into.
    #[cfg(not(target_arch = "wasm32"))]
    fn is_users(&self) -> bool {
        false
    }

    /// Writes `data`, of the element type and shape of `tensor`, into memory of the user's.
    ///
    /// # Errors
    /// `Unsupported` where the elements lie elsewhere or the host cannot write them, `Device` where the device fails.
    #[cfg(not(target_arch = "wasm32"))]
    fn write(&self, tensor: &DeviceTensor, data: &Tensor) -> Result<()> {
        let _ = data;
        let message = format!("writing a tensor of `{}`", tensor.backend);
        Err(crate::error::unsupported(message))
    }

    /// The elements where they are on the host already.
    fn on_host(&self) -> Option<&Tensor> {
        None
    }
}

/// Elements that are on the host already.
impl DeviceHandle for Tensor {
    fn read<'a>(&'a self, tensor: &'a DeviceTensor) -> LocalFuture<'a, Result<Tensor>> {
        Box::pin(std::future::ready(self.reshaped(&tensor.shape)))
    }

    fn on_host(&self) -> Option<&Tensor> {
        Some(self)
    }
}

impl DeviceTensor {
    /// What [`DeviceTensor::backend`] says of host memory, whichever backend computed there.
    pub const HOST: BackendId = BackendId::new("host");

    /// A tensor in host memory. Nothing is copied.
    pub fn on_host(tensor: Tensor) -> DeviceTensor {
        DeviceTensor {
            backend: DeviceTensor::HOST,
            dtype: tensor.dtype(),
            shape: tensor.shape().to_vec(),
            handle: Arc::new(tensor),
        }
    }

    /// The tensor where it is in host memory, which it then shares; `None` elsewhere.
    pub fn as_host(&self) -> Option<Tensor> {
        self.handle.on_host()?.reshaped(&self.shape).ok()
    }

    /// The elements on the host. Of host memory nothing is copied.
    ///
    /// # Errors
    /// `Device` where the device is gone or fails, `Limit` where memory is short, `InvalidValue` where a kernel has
    /// found an index out of range since.
    pub async fn read(&self) -> Result<Tensor> {
        self.handle.read(self).await
    }
}

/// Equal are clones of one tensor under the same shape; elements are not looked at.
impl PartialEq for DeviceTensor {
    fn eq(&self, other: &DeviceTensor) -> bool {
        let same = Arc::ptr_eq(&self.handle, &other.handle);
        same && self.dtype == other.dtype && self.shape == other.shape
    }
}

impl Eq for DeviceTensor {}

impl fmt::Debug for DeviceTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}{:?}", self.backend, self.dtype, self.shape)
    }
}
