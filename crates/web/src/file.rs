//! A file's bytes in the runtime's memory, written piece by piece.

use js_sys::Uint8Array;
use kilim::formats::{HEAD, ImporterRegistry};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Error, ErrorCode};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert;

/// A file of a known length; `WasmSession.load` takes it over.
#[wasm_bindgen]
pub struct WasmFile(AlignedBytes);

#[wasm_bindgen]
impl WasmFile {
    /// # Errors
    /// `LIMIT` where there is no such memory.
    #[wasm_bindgen(constructor)]
    pub fn new(length: usize) -> Result<WasmFile, JsValue> {
        AlignedBytes::zeroed(length)
            .map(WasmFile)
            .map_err(|error| convert::error(&error))
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// `INVALID_VALUE` where they do not lie within the file.
    pub fn write(&mut self, offset: usize, bytes: &Uint8Array) -> Result<(), JsValue> {
        let end = offset.checked_add(bytes.length() as usize);
        let place = end.and_then(|end| self.0.as_mut_slice().get_mut(offset..end));
        let Some(place) = place else {
            let error = Error::new(ErrorCode::InvalidValue, "bytes lie outside of their file");
            return Err(convert::error(&error));
        };
        bytes.copy_to(place);
        Ok(())
    }

    /// A copy of `length` bytes, or of those up to the end.
    pub fn read(&self, length: f64) -> Uint8Array {
        let length = (length as usize).min(self.0.len());
        Uint8Array::from(&self.0.as_slice()[..length])
    }

    /// Whether one of Kilim's own formats knows it under this name.
    #[wasm_bindgen(js_name = isKnown)]
    pub fn is_known(&self, name: &str) -> bool {
        let head = &self.0.as_slice()[..self.0.len().min(HEAD)];
        ImporterRegistry::default().probe(head, name).is_some()
    }
}

impl WasmFile {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    pub(crate) fn into_bytes(self) -> AlignedBytes {
        self.0
    }
}
