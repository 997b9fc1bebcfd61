//! The importers of TFLite, and of Circle, which is TFLite's schema with further operators. Data stays channels-last as both
//! have it, so that a convolutional network imports without a single transpose; weights are brought into the graph's order once.

mod import;
mod ops;
mod schema;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;

use crate::flatbuffer::{self, FlatBuffer};
use crate::{FileParts, Importer, ModelFile, Replaced};
pub(crate) use schema::find_data;
use schema::{Dialect, Model};

/// The importer of `.tflite` files.
pub struct TfLite;

impl Importer for TfLite {
    fn format(&self) -> &'static str {
        "tflite"
    }

    fn probe(&self, bytes: &[u8], _name: &str) -> bool {
        is_of(Dialect::TfLite, bytes)
    }

    fn outline(&self, file: &dyn FileParts) -> Vec<Replaced> {
        flatbuffer::outline(file, find_data)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        load(source, limits)
    }
}

/// The importer of `.circle` files, which Samsung's ONE compiles for its runtime onert.
pub struct Circle;

impl Importer for Circle {
    fn format(&self) -> &'static str {
        "circle"
    }

    fn probe(&self, bytes: &[u8], _name: &str) -> bool {
        is_of(Dialect::Circle, bytes)
    }

    fn outline(&self, file: &dyn FileParts) -> Vec<Replaced> {
        flatbuffer::outline(file, find_data)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        read(Dialect::Circle, source, limits)
    }
}

/// True where `bytes` begin like a TFLite file.
pub fn probe(bytes: &[u8]) -> bool {
    is_of(Dialect::TfLite, bytes)
}

fn is_of(dialect: Dialect, bytes: &[u8]) -> bool {
    bytes.get(4..8) == Some(dialect.identifier().as_bytes())
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
    read(Dialect::TfLite, source, limits)
}

fn read(dialect: Dialect, source: &ModelFile, limits: &Limits) -> Result<Graph> {
    let whole = source.bytes.as_slice();
    if !is_of(dialect, whole) {
        let e = Error::new(ErrorCode::UnknownFormat, "the file has another identifier");
        return Err(e.with_expected(dialect.identifier()));
    }
    let file = FlatBuffer::of(source);
    let model = Model::read(dialect, &file, source, limits)?;
    let Some(main) = model.subgraphs.first() else {
        return Err(Error::new(
            ErrorCode::InvalidModel,
            "the file has no subgraph",
        ));
    };
    let mut graph = import::graph(&model, main, &source.operators)?;
    graph.metadata = Arc::new(model.metadata);
    Ok(graph)
}
