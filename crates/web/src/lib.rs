//! The inside of the npm package: a session and its files as JavaScript classes. The package's
//! TypeScript gives them their public form; here nothing is done twice that it can do.
#![cfg(target_arch = "wasm32")]

mod calibrate;
mod convert;
mod file;
mod memory;
mod operators;
mod pictures;
mod session;

pub use calibrate::calibrate;
pub use file::WasmFile;
pub use session::WasmSession;
