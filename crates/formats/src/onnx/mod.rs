//! The ONNX importer. Every operator is brought to the form of the newest opset; functions, those
//! of the model and those of the standard that Kilim has no operator for, are written out.

mod apart;
mod builder;
mod datum;
mod draft;
mod functions;
pub(crate) mod import;
mod ops;
pub(crate) mod proto;
mod scope;
mod tensor;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kilim_core::error::Result;
use kilim_core::graph::Graph;
use kilim_core::tensor::{AlignedBytes, Tensor};
use kilim_core::{Datum, Kind};

use kilim_core::Limits;

use crate::{FileParts, Importer, ModelFile, Outline, Replaced, head};
pub use draft::{Draft, DraftNode};
pub(crate) use proto::Look;
pub use tensor::{dtype, raw, type_number};

/// ONNX files (`ModelProto` in protobuf).
pub struct Onnx;

impl Importer for Onnx {
    fn format(&self) -> &'static str {
        "onnx"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        Look::of(bytes) == Look::Model
    }

    fn outline(&self, file: &dyn FileParts) -> Vec<Replaced> {
        apart::outline(file)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let bytes = source.bytes.clone();
        let model = proto::ModelProto::decode(bytes.as_slice(), message_depth(limits))?;
        import::model(&model, source, limits)
    }
}

/// Reads a file with one `TensorProto`, as the `.pb` files of ONNX test cases are: its name and data.
///
/// # Errors
/// `InvalidModel` where it is garbled, `Unsupported` for element types that Kilim does not have.
pub fn read_tensor(bytes: &[u8]) -> Result<(String, Tensor)> {
    let (name, datum) = read_datum(bytes, Kind::default())?;
    Ok((name, datum.into_tensor()?))
}

/// Reads a file with one `TensorProto`, `SequenceProto`, `MapProto` or `OptionalProto`; `kind` says
/// with which, since the file does not.
///
/// # Errors
/// `InvalidModel` where it is garbled, `Unsupported` for element types that Kilim does not have.
pub fn read_datum(bytes: &[u8], kind: Kind) -> Result<(String, Datum)> {
    let bytes = Arc::new(AlignedBytes::copy_of(bytes)?);
    let source = ModelFile::new(bytes.clone(), "the tensor");
    let tensors = tensor::Tensors {
        source: &source,
        limits: &Limits::default(),
    };
    datum::read(bytes.as_slice(), kind, &tensors)
}

/// Whether a node of an ONNX file, in any of its graphs and functions, is of the operator `op`. False of
/// what is no ONNX file.
pub fn uses(bytes: &[u8], op: &str) -> bool {
    if Look::of(bytes) != Look::Model {
        return false;
    }
    let model = proto::ModelProto::decode(bytes, message_depth(&Limits::default()));
    model.is_ok_and(|model| {
        let graph = model.graph.iter().flat_map(|g| &g.nodes);
        let functions = model.functions.iter().flat_map(|f| &f.nodes);
        graph.chain(functions).any(|node| node.uses(op))
    })
}

/// [`uses`] of a file that is not in memory.
///
/// # Errors
/// `Io` where it cannot be read, `Limit` where memory is short.
pub fn uses_apart(file: &dyn FileParts, op: &str) -> Result<bool> {
    if !Onnx.probe(&head(file)?, "") {
        return Ok(false);
    }
    let outline = Outline::read(file, &apart::outline(file))?;
    Ok(uses(outline.as_slice(), op))
}

/// A subgraph is four messages deep: node, attribute, graph, and what stands in it.
fn message_depth(limits: &Limits) -> usize {
    limits.depth.saturating_mul(4).min(400)
}
