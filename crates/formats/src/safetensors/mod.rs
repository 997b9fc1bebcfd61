//! Language models as transformers saves them: a `config.json`, and weights in `model.safetensors` beside it, or in several files that
//! `model.safetensors.index.json` lists.
//!
//! The configuration says which network it is and how large; the network is that of `language/`, which GGUF files have, too. Inputs and
//! outputs are the same.

mod config;
mod file;
mod models;
mod names;
mod rope;
mod sizes;
mod tensors;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;

use crate::language;
use crate::{FileParts, Importer, ModelFile, Replaced};
use config::Config;
use tensors::Stored;

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The importer of folders of transformers, by their `config.json` or their only file of weights.
pub struct Safetensors;

impl Importer for Safetensors {
    fn format(&self) -> &'static str {
        "safetensors"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        file::probe(bytes) || is_config(bytes)
    }

    fn outline(&self, file: &dyn FileParts) -> Vec<Replaced> {
        let read = |offset, to: &mut [u8]| file.read(offset, to);
        let header = file::read(file.size(), &read).unwrap_or_default();
        let data = header.entries.iter().map(|entry| entry.data.start).min();
        Replaced::rest(data, file)
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let own = source.bytes.as_slice();
        let (config, shards) = match is_config(own) {
            true => (None, weights_beside(source, limits)?),
            false => (Some(source.whole_external(CONFIG, limits)?), vec![None]),
        };
        let config = match &config {
            Some(config) => config.read()?,
            None => own,
        };
        let config = Config::read(config)?;
        let model = models::model_of(&config)?;
        let mut stored = Stored::new(source, limits, &config, model)?;
        for shard in shards {
            source.interrupt.check()?;
            stored.add(shard)?;
        }
        stored.check_elements()?;
        let sizes = sizes::read(&config, model, stored.count())?;
        let mut graph = language::graph(sizes, &stored, &source.interrupt, limits)?;
        graph.metadata = Arc::new(stored.metadata);
        Ok(graph)
    }
}

/// Words that a text has at most, by the `config.json` of its model.
///
/// # Errors
/// `Unsupported` for a model that Kilim does not have, `InvalidModel` where a setting is missing or of another type.
pub fn context(config: &[u8]) -> Result<usize> {
    let config = Config::read(config)?;
    Ok(sizes::turning(&config, models::model_of(&config)?)?.context)
}

/// Whether a file is a JSON document that says which model of transformers it configures.
fn is_config(bytes: &[u8]) -> bool {
    let key = b"\"model_type\"";
    let begins = bytes.trim_ascii_start().starts_with(b"{");
    begins && bytes.windows(key.len()).any(|part| part == key)
}

/// The files of the weights beside a `config.json`.
///
/// # Errors
/// `Io` where there are none, `InvalidModel` where their list is garbled.
fn weights_beside(source: &ModelFile, limits: &Limits) -> Result<Vec<Option<String>>> {
    let missing = match source.external_size(WEIGHTS, limits) {
        Ok(_) => return Ok(vec![Some(WEIGHTS.to_string())]),
        Err(e) if e.code() == ErrorCode::Io => e,
        Err(e) => return Err(e),
    };
    let index = match source.whole_external(INDEX, limits) {
        Ok(index) => index,
        Err(e) if e.code() == ErrorCode::Io => {
            let e = missing.with_expected(format!("{WEIGHTS}, or the files that {INDEX} lists"));
            return Err(e.with_hint(
                "give the weights along with config.json, or open the folder's .onnx file",
            ));
        }
        Err(e) => return Err(e),
    };
    let index = Config::read(index.read()?).map_err(|e| e.with_input(INDEX))?;
    let files = index.texts_of("weight_map")?;
    let files: BTreeSet<&str> = files.into_iter().collect();
    Ok(files.into_iter().map(|f| Some(f.to_string())).collect())
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}
