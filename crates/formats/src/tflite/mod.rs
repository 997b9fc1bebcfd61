//! The TFLite importer. Data stays channels-last as TFLite has it, so that a convolutional
//! network imports without a single transpose; weights are brought into the graph's order once.

mod import;
mod ops;
mod schema;
#[cfg(test)]
pub(crate) mod tests;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;

use crate::flatbuffer::FlatBuffer;
use schema::Model;

use kilim_core::Limits;

use crate::{Importer, ModelFile};

/// The importer of `.tflite` files.
pub struct TfLite;

impl Importer for TfLite {
    fn format(&self) -> &'static str {
        "tflite"
    }

    fn probe(&self, bytes: &[u8], _name: &str) -> bool {
        probe(bytes)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        load(source, limits)
    }
}

/// True where `bytes` begin like a TFLite file.
pub fn probe(bytes: &[u8]) -> bool {
    bytes.get(4..8) == Some(b"TFL3")
}

/// Reads a TFLite model: the first subgraph, with inputs and outputs under the names of their
/// tensors. Constants share `source` where their order allows it. Custom operators are found among
/// those of `source` in the domain `tflite`; what they are given is the attribute `custom_options`.
///
/// # Errors
/// `UnknownFormat` where the identifier is missing, `InvalidModel` and `InvalidGraph` where the
/// file is garbled, `Unsupported` with the list of all operators that Kilim cannot run, `Limit` where
/// it passes one of the limits.
pub fn load(source: &ModelFile, limits: &Limits) -> Result<Graph> {
    let whole = source.bytes.as_slice();
    if !probe(whole) {
        return Err(Error::new(
            ErrorCode::UnknownFormat,
            "a TFLite file has the identifier TFL3",
        ));
    }
    let file = FlatBuffer::new(whole);
    let model = Model::read(&file, source, limits)?;
    let Some(main) = model.subgraphs.first() else {
        return Err(Error::new(
            ErrorCode::InvalidModel,
            "the file has no subgraph",
        ));
    };
    import::graph(&model, main, &source.operators)
}
