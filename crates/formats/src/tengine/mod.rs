//! The Tengine importer: networks in `.tmfile`, with their weights.
//!
//! Comments name files of Tengine's sources, below `source/`.

mod file;
mod import;
mod network;
mod node;
mod ops;
#[cfg(test)]
mod tests;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::Graph;

use crate::{Importer, ModelFile};

/// The importer of networks in `.tmfile`.
pub struct Tengine;

/// The version of files that can be read (`TM2_FILE_VER_MAIN` in `serializer/tmfile/tm2_format.h`).
const VERSION: u16 = 2;

impl Importer for Tengine {
    fn format(&self) -> &'static str {
        "tengine"
    }

    fn probe(&self, bytes: &[u8], name: &str) -> bool {
        network::probe(bytes, name)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let bytes = source.bytes.as_slice();
        match network::version(bytes) {
            Some((VERSION, 0)) => {}
            version => {
                let shown = |(main, sub)| format!("{main}.{sub}");
                let got = version.map_or("a file without one".to_string(), shown);
                return Err(unsupported("a Tengine model of another version")
                    .with_expected(VERSION)
                    .with_got(got)
                    .with_hint("convert the original model again, by Tengine's convert_tool"));
            }
        }
        let network = network::read(bytes, limits)?;
        import::graph(&network, source)
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
