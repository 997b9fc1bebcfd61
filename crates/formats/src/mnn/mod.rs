//! The MNN importer: a FlatBuffer (`schema/default/MNN.fbs` of MNN) without an identifier, whose weights may lie in a `.mnn.weight` beside
//! it.
//!
//! MNN keeps pictures in three layouts. `NC4HW4` is a matter of its memory: dimensions come in the order of NCHW, and so does data here.

mod apart;
mod blob;
mod import;
mod inputs;
mod known;
mod layout;
mod op;
mod ops;
mod probe;
mod schema;
#[cfg(test)]
mod tests;
mod weights;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;

use crate::flatbuffer::{self, FlatBuffer};
use crate::{FileParts, Importer, ModelFile, Replaced};
pub(crate) use apart::find_data;
use schema::Net;

/// The importer of `.mnn` files.
pub struct Mnn;

impl Importer for Mnn {
    fn format(&self) -> &'static str {
        "mnn"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        probe::is_net(bytes)
    }

    fn outline(&self, file: &dyn FileParts) -> Vec<Replaced> {
        flatbuffer::outline(file, find_data)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let file = FlatBuffer::of(source);
        let net = Net::read(&file, limits)?;
        import::graph(&net, source, limits)
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
