//! The GGUF importer: models of llama.cpp, whose file has weights, tokenizer and settings in one.
//!
//! The file says which architecture it is and how large; the graph stands in llama.cpp (`src/models/`). That of a decoder is built (`language/`)
//! in the form that onnxruntime-genai gives a decoder: words and a mask go in, and caches of keys and values, which come out longer.

mod architecture;
mod encoder;
mod header;
mod metadata;
mod reader;
mod sizes;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::Tensor;

use architecture::{Model, model_of};

use crate::language::{self, Described, Tensors};
use crate::{FileParts, Importer, ModelFile, Replaced};

pub use header::{Header, TensorInfo, with_header};
pub use metadata::{List, Metadata, Value};
pub(crate) use reader::Reader;

/// The importer of GGUF files.
pub struct Gguf;

impl Importer for Gguf {
    fn format(&self) -> &'static str {
        "gguf"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        header::probe(bytes)
    }

    fn outline(&self, file: &dyn FileParts) -> Vec<Replaced> {
        header::outline(file)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let header = Header::read(source.bytes.as_slice())?;
        header.check_elements()?;
        let mut graph = match model_of(&header.metadata)? {
            (_, Model::Decoder(_)) => {
                let sizes = sizes::read(&header.metadata, header.count())?;
                let tensors = OfFile {
                    header: &header,
                    source,
                };
                language::graph(sizes, &tensors, &source.interrupt, limits)?
            }
            (name, Model::Encoder) => encoder::graph(name, &header, source)?,
        };
        graph.metadata = Arc::new(header.metadata.described()?);
        Ok(graph)
    }
}

/// The tensors of a file.
struct OfFile<'a> {
    header: &'a Header<'a>,
    source: &'a ModelFile<'a>,
}

impl Tensors for OfFile<'_> {
    fn find(&self, name: &str) -> Option<Described<'_>> {
        let info = self.header.tensor(name)?;
        Some(Described {
            shape: &info.shape,
            of: info.of,
        })
    }

    fn names(&self) -> Vec<&str> {
        self.header.names().collect()
    }

    fn raw(&self, name: &str) -> Result<Tensor> {
        let info = self.header.tensor(name);
        let data = &info.ok_or_else(|| invalid("the tensor is missing"))?.data;
        // So many as the shape has, which memory can hold.
        self.source
            .part(data.start, (data.end - data.start) as usize)
    }
}

/// Words that a text of the model has at most.
///
/// # Errors
/// `Unsupported` for an architecture that Kilim does not have, `InvalidModel` where its metadata are incomplete.
pub fn context(header: &Header) -> Result<usize> {
    Ok(sizes::read(&header.metadata, header.count())?.context)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
