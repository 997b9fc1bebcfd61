//! The PNNX importer: networks of PyTorch's operators in `NAME.pnnx.param` (text), whose weights lie in a zip archive, `NAME.pnnx.bin`,
//! beside them.
//!
//! Operators are called as PyTorch calls them, and their parameters are its arguments. Comments name files of pnnx's sources, below
//! `tools/pnnx/src/` of ncnn.

mod expression;
mod import;
mod layer;
mod literals;
mod numbers;
mod ops;
#[cfg(test)]
mod tests;
mod text;
mod types;
mod value;
mod weights;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;

use crate::{Importer, ModelFile};

/// The importer of networks in `.pnnx.param`.
pub struct Pnnx;

impl Importer for Pnnx {
    fn format(&self) -> &'static str {
        "pnnx"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        text::probe(bytes)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let network = text::read(source.bytes.as_slice(), limits)?;
        import::graph(&network, source, limits)
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
