//! The ONNX interpreter. Every operator is brought to the form of the newest opset; functions, those
//! of the model and those of the standard that Kilim has no operator for, are written out.

mod builder;
mod import;
mod ops;
mod proto;
mod scope;
mod tensor;

use kilim_core::error::Result;
use kilim_core::graph::Graph;

use crate::{Interpreter, Limits, ModelSource};

/// ONNX files (`ModelProto` in protobuf).
pub struct Onnx;

impl Interpreter for Onnx {
    fn format(&self) -> &'static str {
        "onnx"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        proto::looks_like_model(bytes)
    }

    fn load(&self, source: &ModelSource, limits: &Limits) -> Result<Graph> {
        let bytes = source.bytes.clone();
        let model = proto::ModelProto::decode(bytes.as_slice(), message_depth(limits))?;
        import::model(&model, source, limits)
    }
}

/// A subgraph is four messages deep: node, attribute, graph, and what stands in it.
fn message_depth(limits: &Limits) -> usize {
    limits.depth.saturating_mul(4).min(400)
}
