//! Pictures for ImageDecoder. Their decoders are a binary of their own (`crates/web-pictures`), which
//! JavaScript gives when a model needs it. A [`PictureReader`] has no place for what it calls: the two
//! functions stay with their thread.

use std::cell::RefCell;

use js_sys::{Function, Promise, Uint8Array};
use kilim_core::error::value_error;
use kilim_core::ops::{PictureReader, PixelFormat, unreadable};
use kilim_core::{Error, ErrorCode, Result};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::convert;
use crate::file::WasmFile;

thread_local! {
    /// `{size, decode}`.
    static DECODERS: RefCell<JsValue> = const { RefCell::new(JsValue::UNDEFINED) };
}

/// Where the model has an ImageDecoder, calls `open` (`() => Promise<{size, decode}>`) for what decodes
/// its pictures.
///
/// # Errors
/// What the promise is rejected with; `IO` where the model cannot be read.
pub async fn reader(
    model: Option<&WasmFile>,
    open: Option<JsValue>,
) -> Result<Option<PictureReader>, JsValue> {
    let open = open.and_then(|open| open.dyn_into::<Function>().ok());
    let (Some(open), Some(model)) = (open, model) else {
        return Ok(None);
    };
    if !model.uses("ImageDecoder").map_err(|e| convert::error(&e))? {
        return Ok(None);
    }
    let opening: Promise = open.call0(&JsValue::NULL)?.dyn_into()?;
    let decoders = JsFuture::from(opening).await?;
    DECODERS.set(decoders);
    Ok(Some(PictureReader { size, decode }))
}

fn call(name: &str, file: &[u8], argument: &JsValue) -> Result<JsValue> {
    let decoders = DECODERS.with_borrow(JsValue::clone);
    let function = convert::field(&decoders, name).and_then(|f| f.dyn_into::<Function>().ok());
    let function = function.ok_or_else(|| value_error("another thread has the decoders"))?;
    let called = function.call2(&JsValue::NULL, &Uint8Array::from(file).into(), argument);
    called.map_err(|thrown| error(&thrown))
}

fn error(thrown: &JsValue) -> Error {
    let text = |name| convert::field(thrown, name).and_then(|v| v.as_string());
    let message = text("message").unwrap_or_default();
    let codes = [
        ErrorCode::Unsupported,
        ErrorCode::Limit,
        ErrorCode::InvalidValue,
    ];
    let given = text("code");
    let code = codes
        .into_iter()
        .find(|c| given.as_deref() == Some(c.as_str()));
    // What has no code is no error of the decoders', but how one of them failed.
    let Some(code) = code else {
        return unreadable(message);
    };
    let mut error = Error::new(code, message);
    if let Some(expected) = text("expected") {
        error = error.with_expected(expected);
    }
    match text("got") {
        Some(got) => error.with_got(got),
        None => error,
    }
}

fn size(file: &[u8]) -> Result<[usize; 2]> {
    let sides = call("size", file, &JsValue::UNDEFINED)?;
    let sides: js_sys::Uint32Array = sides.dyn_into().map_err(|_| unreadable("it has no size"))?;
    Ok([sides.get_index(0), sides.get_index(1)].map(|n| n as usize))
}

fn decode(file: &[u8], pixels: PixelFormat) -> Result<Vec<u8>> {
    let bytes = call("decode", file, &pixels.name().into())?;
    let bytes: Uint8Array = bytes
        .dyn_into()
        .map_err(|_| unreadable("it has no bytes"))?;
    Ok(bytes.to_vec())
}
