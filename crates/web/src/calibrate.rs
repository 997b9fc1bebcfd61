//! Measuring the devices of this machine.

use kilim::{Calibration, Runtime};
use kilim_core::calibrate::measure;
use kilim_core::{Error, ErrorCode};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::clock::seconds;
use crate::convert;
use crate::session::json;

/// Measures these backends' devices. Gives JSON, to be kept and handed to `load`.
#[wasm_bindgen]
pub async fn calibrate(backends: JsValue) -> Result<String, JsValue> {
    let measured = all(&backends).await;
    json(&measured.map_err(|e| convert::error(&e))?)
}

async fn all(backends: &JsValue) -> kilim_core::Result<Calibration> {
    let mut calibration = Calibration::default();
    for id in convert::strings(backends, "the list of backends")? {
        let backend = Runtime::shared().backend(&id.as_str().into()).await?;
        calibration.insert(backend.describe(), measure(&backend, seconds).await?);
    }
    Ok(calibration)
}

/// What [`calibrate`] gave.
pub fn parse(text: &str) -> kilim_core::Result<Calibration> {
    serde_json::from_str(text).map_err(|e| {
        Error::new(
            ErrorCode::InvalidValue,
            format!("`calibration` is not what `calibrate` gave: {e}"),
        )
    })
}
