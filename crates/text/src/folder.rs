//! A folder with a model, its tokenizer and its settings.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kilim_core::{Error, ErrorCode, Result};
use serde::de::DeserializeOwned;

use crate::chat::Chat;
use crate::settings::{GenAi, HuggingFace, Settings};
use crate::tokenizer::Tokenizer;

/// A language model as Hugging Face (`config.json`, `generation_config.json`, models in the folder or in `onnx/`) or
/// onnxruntime-genai (`genai_config.json`) lay it out, with `tokenizer.json` and perhaps a chat template.
pub struct Folder {
    path: PathBuf,
    /// The model's file.
    pub model: PathBuf,
    pub settings: Settings,
}

impl Folder {
    /// `file` is the model's file, from the folder on, where there are several.
    ///
    /// # Errors
    /// `Io` where a file is missing or cannot be read, `InvalidModel` where a setting cannot be understood, `Input`
    /// where there are several models and none is chosen.
    pub fn open(path: &Path, file: Option<&Path>) -> Result<Folder> {
        let genai: Option<GenAi> = read_json(&path.join("genai_config.json"))?;
        let (named, settings) = match genai {
            Some(config) => (Some(path.join(config.file())), config.settings()?),
            None => {
                let config = path.join("config.json");
                let config: HuggingFace = read_json(&config)?.ok_or_else(|| missing(&config))?;
                let generation = read_json(&path.join("generation_config.json"))?;
                (None, config.settings(generation.unwrap_or_default()))
            }
        };
        let model = match (file, named) {
            (Some(file), _) => path.join(file),
            (None, Some(named)) => named,
            (None, None) => only_model(path)?,
        };
        if !model.is_file() {
            return Err(missing(&model));
        }
        Ok(Folder {
            path: path.to_path_buf(),
            model,
            settings,
        })
    }

    /// # Errors
    /// Those of [`Tokenizer::open`].
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        Tokenizer::open(&self.path.join("tokenizer.json"))
    }

    /// The template by which a conversation becomes a prompt.
    ///
    /// # Errors
    /// `Io` and `InvalidModel` for its file; `Unsupported` where the folder has none.
    pub fn chat(&self) -> Result<Chat> {
        let settings = read_json(&self.path.join("tokenizer_config.json"))?;
        let file = self.path.join("chat_template.jinja");
        let template = match fs::read_to_string(&file) {
            Ok(template) => Some(template),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(unreadable(&file, &e)),
        };
        Chat::new(template, settings.unwrap_or_default())
    }
}

/// The model of a folder of Hugging Face's layout: `model.onnx`, or the only one that there is.
fn only_model(path: &Path) -> Result<PathBuf> {
    let mut models = Vec::new();
    for folder in [path.join("onnx"), path.to_path_buf()] {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        models.extend(files.filter(|f| f.extension().is_some_and(|e| e == "onnx")));
    }
    models.sort();
    let usual = |name: &str| {
        models
            .iter()
            .find(|m| m.file_name().is_some_and(|f| f == name))
    };
    let chosen = usual("model.onnx").or_else(|| usual("decoder_model_merged.onnx"));
    match (chosen, models.as_slice()) {
        (Some(model), _) | (None, [model]) => Ok(model.clone()),
        (None, []) => Err(missing(&path.join("onnx/model.onnx"))),
        (None, several) => {
            let names = several.iter().map(|m| m.strip_prefix(path).unwrap_or(m));
            let names: Vec<String> = names.map(|m| m.display().to_string()).collect();
            let message = format!("`{}` has several models", path.display());
            let e = Error::new(ErrorCode::Input, message).with_got(names.join(", "));
            Err(e.with_hint("say which file it is"))
        }
    }
}

/// A file of settings; `None` where there is none.
fn read_json<T: DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unreadable(file, &e)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|e| {
        let message = format!("`{}` cannot be understood: {e}", file.display());
        Error::new(ErrorCode::InvalidModel, message)
    })
}

fn missing(file: &Path) -> Error {
    let message = format!("there is no file `{}`", file.display());
    Error::new(ErrorCode::Io, message)
}

pub(crate) fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    let message = format!("`{}` cannot be read: {error}", file.display());
    Error::new(ErrorCode::Io, message)
}
