//! One suite of cases for every backend, natively and in the browser.

pub mod conformance;
pub mod coverage;
#[cfg(doctest)]
mod documents;
pub mod files;
#[cfg(not(target_arch = "wasm32"))]
pub mod fuzz;
#[cfg(not(target_arch = "wasm32"))]
pub mod libraries;
#[cfg(not(target_arch = "wasm32"))]
pub mod machine;
pub mod onnx;
#[cfg(not(target_arch = "wasm32"))]
pub mod scores;
pub mod stand_in;
pub mod wholly;

pub use kilim_conform::operators;
