//! Random operators and their inputs, for the tests of this crate and, with the feature `testing`, of others.

mod generate;
pub mod odd;
mod operators;
mod schema;

pub use generate::{Random, Taste, content, mutations};
pub use operators::{Known, operators};
pub use schema::{Content, OPAQUE, Record, Schema, Schematic};
