//! The binary as a user calls it.

mod check;
mod convert;
mod errors;
#[cfg(feature = "text")]
mod generate;
mod inspect;
mod kernels;
mod large;
mod libraries;
mod manifest;
mod measure;
mod options;
mod run;
mod support;
#[cfg(feature = "speech")]
mod transcribe;
