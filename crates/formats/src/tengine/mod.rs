//! The Tengine importer: networks in `.tmfile`, with their weights.
//!
//! Comments name files of Tengine's sources, below `source/`.

mod file;
mod first;
mod import;
mod network;
mod node;
mod ops;
#[cfg(test)]
mod tests;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::Graph;

use self::network::Version;
use crate::{Importer, ModelFile};

/// The importer of networks in `.tmfile`.
pub struct Tengine;

impl Importer for Tengine {
    fn format(&self) -> &'static str {
        "tengine"
    }

    fn probe(&self, bytes: &[u8], name: &str) -> bool {
        network::probe(bytes, name)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let bytes = source.bytes.as_slice();
        let numbers = network::version(bytes);
        let version = numbers.and_then(|(main, sub)| Version::of(main, sub));
        let version = version.ok_or_else(|| {
            let shown = |(main, sub)| format!("{main}.{sub}");
            let got = numbers.map_or("a file without one".to_string(), shown);
            unsupported("a Tengine model of another version")
                .with_expected("0.1 or 2.0")
                .with_got(got)
                .with_hint("convert the original model again, by Tengine's convert_tool")
        })?;
        let network = network::read(bytes, version, limits)?;
        import::graph(&network, source)
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
