//! Tensors that outlive the arena they were computed in.

use std::sync::Arc;

use kilim_core::backend::DeviceTensor;
use kilim_core::{Error, ErrorCode, Result, Tensor};

use crate::device::faults::{self, Faults};
use crate::device::gpu::{Gpu, GpuBuffer};
use crate::device::storage;
use crate::device::transfer;

/// A copy of a tensor that outlives the arena.
pub(crate) struct ExportedTensor {
    pub buffer: Arc<GpuBuffer>,
}

impl ExportedTensor {
    /// The copy behind a handle; `State` where that is another backend's.
    pub fn of(tensor: &DeviceTensor) -> Result<&ExportedTensor> {
        let handle: &dyn std::any::Any = tensor.handle.as_ref();
        handle.downcast_ref().ok_or_else(|| {
            Error::new(
                ErrorCode::State,
                format!("a tensor of `{}` is not one of `wgpu`", tensor.backend),
            )
        })
    }

    /// The elements; an error where a kernel has reported one since.
    pub async fn read(&self, gpu: &Gpu, faults: &Faults, tensor: &DeviceTensor) -> Result<Tensor> {
        let bytes = storage::device_bytes(tensor.dtype, tensor.shape.iter().product()) as u64;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = gpu.buffer("staging", bytes + faults::BYTES, usage)?;
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        if bytes > 0 {
            encoder.copy_buffer_to_buffer(&self.buffer.raw, 0, &staging.raw, 0, bytes);
        }
        let fault = &faults.buffer.raw;
        encoder.copy_buffer_to_buffer(fault, 0, &staging.raw, bytes, faults::BYTES);
        gpu.queue.submit([encoder.finish()]);
        let data = transfer::map(gpu, &staging, bytes + faults::BYTES).await?;
        faults.check(gpu, &data[bytes as usize..])?;
        storage::from_device(tensor.dtype, &tensor.shape, &data[..bytes as usize])
    }
}
