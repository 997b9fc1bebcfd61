//! The memory of intermediates: one storage buffer for each arena.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::{Allocator, TensorSpec};
use kilim_core::memory::ArenaMemory;

use crate::backend::Device;
use crate::storage;

/// Gives an `Arc<GpuBuffer>` of the device that is open.
pub(crate) struct GpuAllocator(pub Arc<Device>);

impl Allocator for GpuAllocator {
    fn tensor_bytes(&self, tensor: &TensorSpec) -> usize {
        storage::device_bytes(tensor.dtype, tensor.elements())
    }

    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
        let shared = self.0.shared();
        let buffer = shared.gpu.arena(bytes)?;
        shared.gpu.check()?;
        Ok(Box::new(buffer))
    }
}
