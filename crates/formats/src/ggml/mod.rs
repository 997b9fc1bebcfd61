//! The importer of Whisper models in the files of whisper.cpp (`ggml-tiny.bin` and its like), which are older than GGUF.
//!
//! A file is an encoder and a decoder. Both become one graph of two halves that share nothing, with the inputs and outputs that the files
//! of Optimum have: whoever wants one half alone asks for its outputs ([`ENCODED`], [`DECODED`]).

mod decoder;
mod encoder;
mod front;
mod network;
mod tensors;
#[cfg(test)]
mod tests;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;

use crate::{FileParts, Importer, ModelFile, Replaced};

use network::Network;
use tensors::OfFile;

pub use front::{Front, Sizes, probe, with_front};

/// The outputs of the encoder, and of the decoder, as patterns.
pub const ENCODED: [&str; 1] = ["last_hidden_state"];
pub const DECODED: [&str; 2] = ["logits", "present.*"];

/// The importer of Whisper models of ggml.
pub struct Ggml;

impl Importer for Ggml {
    fn format(&self) -> &'static str {
        "ggml"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        probe(bytes)
    }

    fn outline(&self, file: &dyn FileParts) -> Vec<Replaced> {
        tensors::outline(file)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let front = Front::read(source.bytes.as_slice())?;
        let tensors = OfFile::read(&front, source)?;
        let mut network = Network::new(&front.sizes, &tensors, &source.interrupt, limits);
        network.encoder()?;
        network.decoder()?;
        network.finish()
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
