//! The ORT importer. The format of onnxruntime's mobile builds holds an ONNX model in a FlatBuffer, optimised on the way; it
//! is read into the messages of ONNX, and imported as these are.

mod messages;
mod order;
#[cfg(test)]
mod tests;

use kilim_core::Limits;
use kilim_core::error::Result;
use kilim_core::graph::Graph;

use crate::flatbuffer::{self, FlatBuffer};
use crate::{FileParts, Importer, ModelFile, Replaced, onnx};
pub(crate) use messages::find_data;

/// ORT files: FlatBuffers with the identifier `ORTM`.
pub struct Ort;

impl Importer for Ort {
    fn format(&self) -> &'static str {
        "ort"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        bytes.get(4..8) == Some(b"ORTM")
    }

    fn outline(&self, file: &dyn FileParts) -> Vec<Replaced> {
        flatbuffer::outline(file, find_data)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let file = FlatBuffer::of(source);
        let model = messages::model(&file, limits.depth)?;
        onnx::import::model(&model, source, limits)
    }
}
