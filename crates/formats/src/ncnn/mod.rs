//! The ncnn importer: networks in `.param` or `.param.bin`, whose weights lie in a `.bin` beside them.
//!
//! Blobs of ncnn have no batch: `[w]`, `[h, w]`, `[c, h, w]` or `[c, d, h, w]`. In the graph they have a dimension of 1 in front,
//! which is what convolutions expect. Inputs keep it, as models of other formats have it; outputs are the blobs themselves.

mod binary;
mod import;
mod inputs;
mod layer;
mod network;
mod ops;
mod params;
mod sizes;
#[cfg(test)]
mod tests;
mod text;
mod weights;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;

use crate::{Importer, ModelFile};

/// The importer of networks in `.param` and `.param.bin`.
pub struct Ncnn;

impl Importer for Ncnn {
    fn format(&self) -> &'static str {
        "ncnn"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        text::probe(bytes) || binary::probe(bytes)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let bytes = source.bytes.as_slice();
        let network = match binary::probe(bytes) {
            true => binary::read(bytes, limits)?,
            false => text::read(bytes, limits)?,
        };
        import::graph(&network, source, limits)
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
