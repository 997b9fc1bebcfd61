//! Values of every type with attributes, made at random: what the derive adds for the tests of this crate.

mod fields;
pub mod generate;
mod schema;

pub use generate::{Random, Taste, content, mutations};
pub use schema::{Content, OPAQUE, Record, Schema, Schematic};
