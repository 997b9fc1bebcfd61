//! Files that a session is loaded with: in the runtime's memory, or read where they lie.

use std::sync::Arc;

use js_sys::{Function, Uint8Array};
use kilim::formats::{FileParts, GivenFile, HEAD, ImporterRegistry, head, onnx};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Error, ErrorCode, Result};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::callback::Callback;
use crate::convert;

/// Bytes that JavaScript holds of a file at a time.
const PIECE: usize = 8 << 20;

/// A file of a known length; `WasmSession.load` takes it over.
#[wasm_bindgen]
pub struct WasmFile(Held);

enum Held {
    /// Bytes, written piece by piece.
    Bytes(AlignedBytes),
    Apart(Arc<Apart>),
}

/// A file that JavaScript reads.
struct Apart {
    size: u64,
    /// `(from: number, length: number) => Uint8Array`, which may throw.
    read: Callback,
}

impl Apart {
    fn bytes(&self, offset: u64, len: usize) -> Result<Uint8Array> {
        let failed = |message: &str| {
            let e = Error::new(ErrorCode::Io, message);
            e.with_hint("load the model anew")
        };
        let read = self.read.function();
        let read = read.ok_or_else(|| failed("another thread has the file"))?;
        let (from, length) = (JsValue::from(offset as f64), JsValue::from(len as f64));
        let bytes = read.call2(&JsValue::NULL, &from, &length);
        let bytes = bytes.map_err(|thrown| {
            let message = convert::field(&thrown, "message").and_then(|m| m.as_string());
            failed(&message.unwrap_or_else(|| "the file cannot be read".to_string()))
        })?;
        let bytes = bytes.dyn_into::<Uint8Array>().ok();
        let whole = bytes.filter(|bytes| bytes.length() as usize == len);
        whole.ok_or_else(|| failed("the file ends before what it had"))
    }
}

impl FileParts for Apart {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        for (at, piece) in (offset..).step_by(PIECE).zip(to.chunks_mut(PIECE)) {
            self.bytes(at, piece.len())?.copy_to(piece);
        }
        Ok(())
    }
}

#[wasm_bindgen]
impl WasmFile {
    /// # Errors
    /// `LIMIT` where there is no such memory.
    #[wasm_bindgen(constructor)]
    pub fn new(length: usize) -> std::result::Result<WasmFile, JsValue> {
        AlignedBytes::zeroed(length)
            .map(|bytes| WasmFile(Held::Bytes(bytes)))
            .map_err(|error| convert::error(&error))
    }

    /// A file of `size` bytes that `read(from, length)` gives parts of, at once, for as long as the session may need them.
    pub fn apart(size: f64, read: Function) -> WasmFile {
        let (size, read) = (size as u64, Callback::new(read));
        WasmFile(Held::Apart(Arc::new(Apart { size, read })))
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// `INVALID_VALUE` where they do not lie within the file, or it is not in memory.
    pub fn write(&mut self, offset: usize, bytes: &Uint8Array) -> std::result::Result<(), JsValue> {
        let end = offset.checked_add(bytes.length() as usize);
        let place = match &mut self.0 {
            Held::Bytes(held) => end.and_then(|end| held.as_mut_slice().get_mut(offset..end)),
            Held::Apart(_) => None,
        };
        let Some(place) = place else {
            let error = Error::new(ErrorCode::InvalidValue, "bytes lie outside of their file");
            return Err(convert::error(&error));
        };
        bytes.copy_to(place);
        Ok(())
    }

    /// A copy of `length` bytes, or of those up to the end.
    ///
    /// # Errors
    /// `IO` where the file cannot be read.
    pub fn read(&self, length: f64) -> std::result::Result<Uint8Array, JsValue> {
        match &self.0 {
            Held::Bytes(bytes) => {
                let length = (length as usize).min(bytes.len());
                Ok(Uint8Array::from(&bytes.as_slice()[..length]))
            }
            Held::Apart(file) => {
                let length =
                    (length as usize).min(usize::try_from(file.size).unwrap_or(usize::MAX));
                let bytes = file.bytes(0, length).map_err(|e| convert::error(&e))?;
                Ok(bytes.slice(0, length as u32))
            }
        }
    }

    /// Whether one of Kilim's own formats knows it under this name.
    #[wasm_bindgen(js_name = isKnown)]
    pub fn is_known(&self, name: &str) -> std::result::Result<bool, JsValue> {
        let knows = |head: &[u8]| ImporterRegistry::default().probe(head, name).is_some();
        match &self.0 {
            Held::Bytes(bytes) => Ok(knows(&bytes.as_slice()[..bytes.len().min(HEAD)])),
            Held::Apart(file) => {
                let head = head(&**file).map_err(|e| convert::error(&e))?;
                Ok(knows(&head))
            }
        }
    }
}

impl WasmFile {
    /// Whether it is an ONNX model with a node of the operator `op`.
    ///
    /// # Errors
    /// `Io` where the file cannot be read, `Limit` where memory is short.
    pub(crate) fn uses(&self, op: &str) -> Result<bool> {
        match &self.0 {
            Held::Bytes(bytes) => Ok(onnx::uses(bytes.as_slice(), op)),
            Held::Apart(file) => onnx::uses_apart(&**file, op),
        }
    }

    pub(crate) fn given(self) -> GivenFile {
        match self.0 {
            Held::Bytes(bytes) => Arc::new(bytes).into(),
            Held::Apart(file) => GivenFile::Parts(file),
        }
    }
}
