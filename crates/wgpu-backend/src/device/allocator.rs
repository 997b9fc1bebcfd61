//! The memory of intermediates: one storage buffer for each arena.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::{Allocator, TensorSpec};
use kilim_core::memory::ArenaMemory;

use crate::device::Device;
use crate::device::storage;

/// Gives an `Arc<GpuBuffer>` of the device that is open.
pub(crate) struct GpuAllocator(pub Arc<Device>);

impl Allocator for GpuAllocator {
    fn tensor_bytes(&self, tensor: &TensorSpec) -> usize {
        storage::device_bytes(tensor.dtype, tensor.elements())
    }

    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
        let gpu = self.0.gpu();
        let buffer = gpu.arena(bytes)?;
        gpu.check()?;
        Ok(Box::new(buffer))
    }
}
