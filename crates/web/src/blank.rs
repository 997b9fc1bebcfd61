//! Tensors on the GPU that scripts write: pictures come to it without a detour over the runtime's memory.

use kilim_core::{DType, Error, ErrorCode};
use kilim_wgpu::WgpuBackend;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert;
use crate::session::WasmSession;

#[wasm_bindgen]
impl WasmSession {
    /// A kept tensor whose elements are to be written: `{kept, device, buffer}`, the last two WebGPU's; `undefined` where the
    /// session has no GPU, or that does not hold it.
    pub fn blank(&self, dtype: &str, shape: &[u32]) -> Result<JsValue, JsValue> {
        let dtype = DType::from_name(dtype).ok_or_else(|| {
            let error = Error::new(ErrorCode::InvalidValue, "there is no such element type");
            convert::error(&error.with_got(dtype))
        })?;
        let shape: Vec<usize> = shape.iter().map(|&size| size as usize).collect();
        let elements = shape
            .iter()
            .try_fold(1usize, |n, size| n.checked_mul(*size));
        if elements.is_none() {
            return Ok(JsValue::UNDEFINED);
        }
        let made = self.change(|session| session.blank(&WgpuBackend::ID, dtype, &shape))?;
        let Some(tensor) = made.map_err(|e| convert::error(&e))? else {
            return Ok(JsValue::UNDEFINED);
        };
        let Some([device, buffer]) = kilim_wgpu::handles(&tensor) else {
            return Ok(JsValue::UNDEFINED);
        };
        Ok(convert::object([
            ("kept", Some(self.kept.add(tensor).into())),
            ("device", Some(device)),
            ("buffer", Some(buffer)),
        ]))
    }
}
