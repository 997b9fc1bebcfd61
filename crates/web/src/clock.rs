//! The clock of the page, or of the worker.

use wasm_bindgen::JsCast;
use web_sys::{Performance, WorkerGlobalScope};

thread_local! {
    static CLOCK: Option<Performance> = {
        // A window has `performance` as a worker has.
        let scope: WorkerGlobalScope = js_sys::global().unchecked_into();
        scope.performance()
    };
}

/// Milliseconds since the page, or the worker, began; 0 where there is no clock.
pub fn milliseconds() -> f64 {
    CLOCK.with(|clock| clock.as_ref().map_or(0.0, Performance::now))
}

/// [`milliseconds`] in seconds.
pub fn seconds() -> f64 {
    milliseconds() / 1000.0
}
