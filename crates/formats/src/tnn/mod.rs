//! The TNN importer: networks in `.tnnproto`, whose weights lie in a `.tnnmodel` beside them.
//!
//! Blobs are as those of ONNX, with a batch in front and channels behind it. Comments name files of TNN's sources, below `source/tnn/`.

mod bytes;
mod import;
mod layer;
mod model;
mod network;
mod ops;
mod stream;
#[cfg(test)]
mod tests;
mod weights;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;

use crate::{Importer, ModelFile};

/// The importer of networks in `.tnnproto`.
pub struct Tnn;

impl Importer for Tnn {
    fn format(&self) -> &'static str {
        "tnn"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        network::probe(bytes)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let network = network::read(source.bytes.as_slice(), limits)?;
        import::graph(&network, source, limits)
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
