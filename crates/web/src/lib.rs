//! The inside of the npm package: a session and its files as JavaScript classes. The package's
//! TypeScript gives them their public form; here nothing is done twice that it can do.
#![cfg(target_arch = "wasm32")]

mod backend;
mod blank;
mod calibrate;
mod callback;
mod clock;
mod convert;
mod draft;
mod file;
mod kept;
mod memory;
mod metadata;
mod operators;
mod pictures;
mod session;
mod speech;
mod stop;
mod text;
#[cfg(target_feature = "atomics")]
mod threads;

pub use calibrate::calibrate;
pub use file::WasmFile;
pub use session::WasmSession;
#[cfg(target_feature = "atomics")]
pub use threads::{help, set_workers};

/// A panic is a fault of Kilim's: where it was goes to the console, and the call that met it fails with
/// `INTERNAL`.
#[wasm_bindgen::prelude::wasm_bindgen(start)]
fn start() {
    console_error_panic_hook::set_once();
}
