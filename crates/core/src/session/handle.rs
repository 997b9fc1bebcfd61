//! Tensors on their way between stages.

use super::Shared;
use crate::backend::{DeviceTensor, TensorSpec};
use crate::error::{Error, ErrorCode, Result};
use crate::ops::Fact;
use crate::tensor::Tensor;

/// A tensor between stages: on the host, or still on a device.
#[derive(Clone, Debug)]
pub(crate) enum Handle {
    Host(Tensor),
    Device(DeviceTensor),
}

impl Handle {
    pub fn spec(&self) -> TensorSpec {
        match self {
            Handle::Host(t) => TensorSpec::new(t.dtype(), t.shape()),
            Handle::Device(d) => TensorSpec::new(d.dtype, &d.shape),
        }
    }

    pub fn fact(&self) -> Fact {
        let spec = self.spec();
        Fact::fixed(spec.dtype, &spec.shape)
    }

    /// The same elements under another shape.
    pub fn reshaped(self, shape: &[usize]) -> Result<Handle> {
        Ok(match self {
            Handle::Host(t) => Handle::Host(t.reshaped(shape)?),
            Handle::Device(d) => Handle::Device(DeviceTensor {
                shape: shape.to_vec(),
                ..d
            }),
        })
    }

    /// Brings the tensor to the host if it is not there.
    pub async fn into_host(self, shared: &mut Shared) -> Result<Tensor> {
        match self {
            Handle::Host(t) => Ok(t),
            Handle::Device(d) => {
                let on = shared
                    .backends
                    .iter()
                    .position(|b| b.describe().id == d.backend);
                let lost = || Error::new(ErrorCode::State, "a tensor's backend is gone");
                let context = on
                    .and_then(|i| shared.contexts.get_mut(i))
                    .ok_or_else(lost)?;
                let mut read = context.read(std::slice::from_ref(&d)).await?;
                read.pop().ok_or_else(lost)
            }
        }
    }
}
