//! The decoders of pictures as a binary of their own, which the npm package fetches for models with
//! ImageDecoder only. `crates/web/src/pictures.rs` calls it.
#![cfg(target_arch = "wasm32")]

use js_sys::{Object, Reflect};
use kilim_core::Error;
use kilim_core::ops::{PixelFormat, unreadable};
use kilim_pictures::READER;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// Height and width of a picture file.
#[wasm_bindgen]
pub fn size(file: &[u8]) -> Result<Vec<u32>, JsValue> {
    let size = (READER.size)(file).map_err(|e| thrown(&e))?;
    Ok(size.map(|n| n as u32).to_vec())
}

/// Bytes `[height, width, channels]`; `pixels` is a [`PixelFormat`]'s name in ONNX.
#[wasm_bindgen]
pub fn decode(file: &[u8], pixels: &str) -> Result<Vec<u8>, JsValue> {
    let known = PixelFormat::from_name(pixels);
    let pixels = known.ok_or_else(|| thrown(&unreadable(format!("no pixels are `{pixels}`"))))?;
    (READER.decode)(file, pixels).map_err(|e| thrown(&e))
}

fn thrown(error: &Error) -> JsValue {
    let object = Object::new();
    let fields = [
        ("code", Some(error.code().as_str())),
        ("message", Some(error.message())),
        ("expected", error.expected()),
        ("got", error.got()),
    ];
    for (name, text) in fields {
        // Setting a field of a fresh plain object cannot fail.
        let _ = Reflect::set(
            &object,
            &name.into(),
            &text.map_or(JsValue::UNDEFINED, JsValue::from),
        );
    }
    object.into()
}
