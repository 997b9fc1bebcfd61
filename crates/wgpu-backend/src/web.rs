//! What scripts of a page see of tensors on its GPU.

use std::any::Any;

use kilim_core::backend::DeviceTensor;
use wasm_bindgen::JsValue;

use crate::executable::exported::ExportedTensor;

/// The `GPUDevice` and the `GPUBuffer` of a tensor on a GPU of the page; `None` for one that is elsewhere.
pub fn handles(tensor: &DeviceTensor) -> Option<[JsValue; 2]> {
    let handle: &dyn Any = tensor.handle.as_ref();
    let exported: &ExportedTensor = handle.downcast_ref()?;
    let device: &JsValue = exported.gpu.device.as_webgpu()?.as_ref();
    let buffer: &JsValue = exported.buffer.raw.as_webgpu()?.as_ref();
    Some([device.clone(), buffer.clone()])
}
