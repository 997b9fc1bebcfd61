//! The roofline of the kernels in a page, as a binary of its own that no page of the package fetches:
//! `bench/web/kernels-page.mjs` calls it.
#![cfg(target_arch = "wasm32")]

use kilim_core::{Error, ErrorCode};
use kilim_simd_cpu::roofline::{Roofline, Settings, Subject};
use serde::Serialize;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::WorkerGlobalScope;

/// Seconds that have passed since the page, or the worker, began.
fn seconds() -> f64 {
    // A window has `performance` as a worker has.
    let scope: WorkerGlobalScope = js_sys::global().unchecked_into();
    scope
        .performance()
        .map_or(0.0, |clock| clock.now() / 1000.0)
}

/// Measures kernels on the thread that calls it.
#[wasm_bindgen]
pub struct Kernels {
    roofline: Roofline,
}

#[wasm_bindgen]
impl Kernels {
    /// `sample` is in seconds, `turns` the number of samples of each kernel. Measures the machine's peaks.
    ///
    /// # Errors
    /// Throws a sentence where memory is short.
    #[wasm_bindgen(constructor)]
    pub fn new(sample: f64, turns: u32) -> Result<Kernels, String> {
        let roofline = Roofline::new(Settings {
            threads: Some(1),
            sample,
            turns: turns as usize,
            clock: seconds,
        });
        let roofline = roofline.map_err(|error| error.sentence())?;
        Ok(Kernels { roofline })
    }

    /// The peaks as JSON.
    ///
    /// # Errors
    /// Throws a sentence where they cannot be written as JSON.
    pub fn peaks(&self) -> Result<String, String> {
        json(self.roofline.peaks())
    }

    /// The names of the shapes, in order.
    pub fn titles() -> Vec<String> {
        Subject::all().map(|subject| subject.to_string()).collect()
    }

    /// Times the kernels for the shape of this number; the figures as JSON.
    ///
    /// # Errors
    /// Throws a sentence where there is no such shape, or memory is short.
    pub fn measure(&self, number: usize) -> Result<String, String> {
        let subject = Subject::all().nth(number).ok_or_else(|| {
            let error = Error::new(ErrorCode::InvalidValue, "there is no such shape");
            error.with_got(number).sentence()
        })?;
        let row = self.roofline.measure(subject);
        json(&row.map_err(|error| error.sentence())?)
    }
}

fn json(figures: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(figures).map_err(|error| error.to_string())
}
