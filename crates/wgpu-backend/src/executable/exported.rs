//! Tensors that outlive the arena they were computed in.

use std::any::Any;
use std::sync::Arc;

use kilim_core::backend::{DeviceHandle, DeviceTensor, LocalFuture};
use kilim_core::{Error, ErrorCode, Result, Tensor};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen::JsValue;

use crate::device::faults::{self, Faults};
use crate::device::gpu::{Gpu, GpuBuffer};
use crate::device::storage;
use crate::device::transfer;

/// A copy of a tensor that outlives the arena, and the session.
pub(crate) struct ExportedTensor {
    pub gpu: Arc<Gpu>,
    /// The faults of the context that the tensor comes from.
    pub faults: Arc<Faults>,
    pub buffer: Arc<GpuBuffer>,
}

impl ExportedTensor {
    /// The copy behind a handle; `None` where that is another backend's, or on another device.
    pub fn on<'a>(gpu: &Arc<Gpu>, tensor: &'a DeviceTensor) -> Option<&'a ExportedTensor> {
        let handle: &dyn Any = tensor.handle.as_ref();
        let exported: &ExportedTensor = handle.downcast_ref()?;
        Arc::ptr_eq(&exported.gpu, gpu).then_some(exported)
    }

    /// The elements; an error where a kernel has reported one since.
    async fn read_back(&self, tensor: &DeviceTensor) -> Result<Tensor> {
        let gpu = &self.gpu;
        if gpu.is_lost() {
            let message = "the device that a tensor was kept on is gone";
            let e = Error::new(ErrorCode::Device, message);
            return Err(e.with_hint("compute the tensor again, from inputs that are on the host"));
        }
        let bytes = storage::device_bytes(tensor.dtype, tensor.shape.iter().product()) as u64;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = gpu.buffer("staging", bytes + faults::BYTES, usage)?;
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        if bytes > 0 {
            encoder.copy_buffer_to_buffer(&self.buffer.raw, 0, &staging.raw, 0, bytes);
        }
        let fault = &self.faults.buffer.raw;
        encoder.copy_buffer_to_buffer(fault, 0, &staging.raw, bytes, faults::BYTES);
        gpu.queue.submit([encoder.finish()]);
        let data = transfer::map(gpu, &staging, bytes + faults::BYTES).await?;
        self.faults.check(gpu, &data[bytes as usize..])?;
        storage::from_device(tensor.dtype, &tensor.shape, &data[..bytes as usize])
    }
}

impl DeviceHandle for ExportedTensor {
    fn read<'a>(&'a self, tensor: &'a DeviceTensor) -> LocalFuture<'a, Result<Tensor>> {
        Box::pin(self.read_back(tensor))
    }
}

/// The `GPUDevice` and the `GPUBuffer` of a tensor on a GPU of the page, for its scripts; `None` for one that is elsewhere.
#[cfg(target_arch = "wasm32")]
pub fn handles(tensor: &DeviceTensor) -> Option<[JsValue; 2]> {
    let handle: &dyn Any = tensor.handle.as_ref();
    let exported: &ExportedTensor = handle.downcast_ref()?;
    let device: &JsValue = exported.gpu.device.as_webgpu()?.as_ref();
    let buffer: &JsValue = exported.buffer.raw.as_webgpu()?.as_ref();
    Some([device.clone(), buffer.clone()])
}
