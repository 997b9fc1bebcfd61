//! Manifests of models with stored inputs and references.

use std::path::Path;

use kilim::compare::Rule;
use kilim::{Error, ErrorCode, Result};
use serde::Deserialize;

#[derive(Deserialize)]
pub struct Manifest {
    pub models: Vec<Model>,
}

#[derive(Deserialize)]
pub struct Model {
    pub name: String,
    pub variants: Vec<Variant>,
}

#[derive(Deserialize)]
pub struct Variant {
    pub format: String,
    /// The first whose format is known is the model; the others are read with it.
    pub files: Vec<String>,
    #[serde(default)]
    pub cases: Vec<Case>,
    #[serde(default)]
    pub tolerance: serde_json::Value,
}

impl Variant {
    /// How the outputs of its cases are compared with their references.
    ///
    /// # Errors
    /// `InvalidValue` where the tolerance is not understood.
    pub fn rule(&self) -> Result<Rule> {
        match &self.tolerance {
            serde_json::Value::String(text) => Rule::parse(text),
            serde_json::Value::Number(number) => Rule::parse(&number.to_string()),
            serde_json::Value::Null => {
                let message = "the manifest does not say how outputs are compared";
                Err(Error::new(ErrorCode::InvalidValue, message).with_expected("a `tolerance`"))
            }
            other => Rule::parse(&other.to_string()),
        }
    }
}

#[derive(Deserialize)]
pub struct Case {
    pub case: String,
    pub inputs: Vec<Stored>,
    pub outputs: Vec<Stored>,
}

#[derive(Deserialize)]
pub struct Stored {
    pub name: String,
    pub file: String,
    pub key: String,
    pub dtype: String,
}

impl Manifest {
    pub fn read(file: &Path) -> Result<Manifest> {
        let text = std::fs::read(file).map_err(|e| crate::data::io_error(file, e))?;
        serde_json::from_slice(&text).map_err(|e| {
            Error::new(
                ErrorCode::Io,
                format!("`{}` is not a manifest: {e}", file.display()),
            )
        })
    }
}
