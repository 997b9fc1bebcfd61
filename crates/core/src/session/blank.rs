//! Tensors that the scripts of a page write.

use super::Session;
use crate::backend::{BackendId, TensorSpec};
use crate::device_tensor::DeviceTensor;
use crate::dtype::DType;
use crate::error::Result;

impl Session {
    /// A tensor on the device of a backend, whose elements scripts of the page write before a run is given it. `None` where the
    /// session has no such backend, or that has none that scripts can write.
    ///
    /// # Errors
    /// `Limit` where the device has no memory for it, `Device` where it fails.
    pub fn blank(
        &mut self,
        backend: &BackendId,
        dtype: DType,
        shape: &[usize],
    ) -> Result<Option<DeviceTensor>> {
        let backends = &self.shared.backends;
        match backends.position(|b| b.describe().id == *backend) {
            Some(b) => self.shared.contexts[b].blank(&TensorSpec::new(dtype, shape)),
            None => Ok(None),
        }
    }
}
