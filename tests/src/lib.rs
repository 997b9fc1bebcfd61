//! One suite of cases for every backend, natively and in the browser.

pub mod conformance;
pub mod coverage;
pub mod files;
pub mod onnx;
pub mod operators;
pub mod stand_in;
pub mod wholly;
