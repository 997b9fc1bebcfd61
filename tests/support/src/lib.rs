//! What the tests of every crate share. It depends on nothing, so that every crate can use it.

pub mod allocations;
pub mod archive;
pub mod documents;
pub mod material;
mod skips;
pub mod tflite;
pub mod tones;

pub use skips::{say, skip, skip_part};
