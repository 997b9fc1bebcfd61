//! The GGUF importer: models of llama.cpp, whose file has weights, tokenizer and settings in one.
//!
//! The file says which architecture it is and how large; the graph stands in llama.cpp (`src/models/`). That of a decoder is built here in
//! the form that onnxruntime-genai gives a decoder: words and a mask go in, and caches of keys and values, which come out longer.

mod angles;
mod architecture;
mod attention;
mod blocks;
mod convolution;
mod decoder;
mod encoder;
mod header;
mod matrix;
mod metadata;
mod reader;
mod sizes;
#[cfg(test)]
mod tests;
mod weights;

use std::ops::Range;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;

use architecture::{Model, model_of};

use crate::{FileParts, Importer, ModelFile};

pub use header::{Header, TensorInfo, with_header};
pub use metadata::{List, Metadata, Value};

/// The importer of GGUF files.
pub struct Gguf;

impl Importer for Gguf {
    fn format(&self) -> &'static str {
        "gguf"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        header::probe(bytes)
    }

    fn weights(&self, file: &dyn FileParts) -> Vec<Range<usize>> {
        header::weights(file)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let header = Header::read(source.bytes.as_slice())?;
        header.check_elements()?;
        match model_of(&header.metadata)? {
            (_, Model::Decoder(_)) => decoder::graph(&header, source, limits),
            (name, Model::Encoder) => encoder::graph(name, &header, source),
        }
    }
}

/// Words that a text of the model has at most.
///
/// # Errors
/// `Unsupported` for an architecture that Kilim does not have, `InvalidModel` where its metadata are incomplete.
pub fn context(header: &Header) -> Result<usize> {
    Ok(sizes::Sizes::read(&header.metadata, header.count())?.context)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
