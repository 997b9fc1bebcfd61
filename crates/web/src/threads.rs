//! Workers of the page that compute for the one with the session: instances of the same module on the same memory.

use std::cell::RefCell;

use js_sys::Function;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

thread_local! {
    static CALL: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Tells the thread with the session of so many workers. `call` is given a number, and has as many of them call
/// [`help`], soon; it does not wait for them.
#[wasm_bindgen(js_name = setWorkers)]
pub fn set_workers(count: usize, call: Function) {
    CALL.replace(Some(call));
    kilim_host::set_workers(count, |wanted| {
        CALL.with_borrow(|call| {
            if let Some(call) = call {
                // What it throws is a mistake of the package's; the work is done all the same.
                let _ = call.call1(&JsValue::NULL, &JsValue::from_f64(wanted as f64));
            }
        });
    });
}

/// Does what the session's thread has to share, until there was nothing for so many turns of a loop. Whether there was
/// something.
#[wasm_bindgen]
pub fn help(turns: usize) -> bool {
    kilim_host::help(turns)
}
