//! A folder with a model, its tokenizer and its settings.

use std::fs;
use std::io::{ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};

use kilim_core::{Error, ErrorCode, Result};
use kilim_formats::safetensors;
use serde::de::DeserializeOwned;

use crate::chat::Chat;
use crate::gguf::GgufText;
use crate::settings::{GenAi, HuggingFace, Settings, parse_settings};
use crate::tokenizer::Tokenizer;

/// A language model as Hugging Face (`config.json`, `generation_config.json`, models in the folder or in `onnx/`, else weights in
/// `model.safetensors` or the files that its index lists) or
/// onnxruntime-genai (`genai_config.json`) lay it out, with `tokenizer.json` and perhaps a chat template; or a GGUF file, which
/// has all of it.
pub struct Folder {
    path: PathBuf,
    /// What a GGUF file says; files beside the model say it of others.
    inside: Option<GgufText>,
    /// The model's file.
    pub model: PathBuf,
    pub settings: Settings,
}

impl Folder {
    /// `path` is a folder or a GGUF file, `file` the model's file, from the folder on, where there are several.
    ///
    /// # Errors
    /// `Io` where a file is missing or cannot be read, `InvalidModel` where a setting cannot be understood, `Input`
    /// where there are several models and none is chosen.
    pub fn open(path: &Path, file: Option<&Path>) -> Result<Folder> {
        let chosen = file.map(|file| path.join(file)).or_else(|| only_gguf(path));
        let model = chosen.unwrap_or_else(|| path.to_path_buf());
        if let Some(inside) = gguf(&model)? {
            return Ok(Folder {
                path: path.to_path_buf(),
                settings: inside.settings.clone(),
                inside: Some(inside),
                model,
            });
        }
        let genai: Option<GenAi> = read_json(&path.join("genai_config.json"))?;
        let (named, mut settings) = match genai {
            Some(config) => (Some(path.join(config.file())), config.settings()?),
            None => {
                let config = path.join(CONFIG);
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
        if is_of_transformers(&model) {
            let config = path.join(CONFIG);
            let bytes = fs::read(&config).map_err(|e| unreadable(&config, &e))?;
            settings.context = Some(safetensors::context(&bytes)?);
        }
        Ok(Folder {
            path: path.to_path_buf(),
            inside: None,
            model,
            settings,
        })
    }

    /// # Errors
    /// Those of [`Tokenizer::open`].
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        match &self.inside {
            Some(inside) => Tokenizer::of_bytes(inside.tokenizer.as_bytes(), &self.model),
            None => Tokenizer::open(&self.path.join("tokenizer.json")),
        }
    }

    /// The template by which a conversation becomes a prompt.
    ///
    /// # Errors
    /// `Io` and `InvalidModel` for its file; `Unsupported` where the folder has none.
    pub fn chat(&self) -> Result<Chat> {
        if let Some(inside) = &self.inside {
            return Chat::new(
                None,
                parse_settings("tokenizer_config.json", &inside.templates)?,
            );
        }
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

/// The GGUF file of a folder without settings, where there is one.
fn only_gguf(path: &Path) -> Option<PathBuf> {
    let settings = ["genai_config.json", CONFIG];
    if settings.iter().any(|name| path.join(name).is_file()) {
        return None;
    }
    let entries = fs::read_dir(path).ok()?;
    let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files = files.filter(|file| file.extension().is_some_and(|end| end == "gguf"));
    files.next().filter(|_| files.next().is_none())
}

/// What a GGUF file says of its words; `None` of a folder or another file.
fn gguf(file: &Path) -> Result<Option<GgufText>> {
    with_beginning(file, *b"GGUF", GgufText::read)
}

/// Fills a buffer with the beginning of a file.
pub type Begin<'a> = &'a dyn Fn(&mut [u8]) -> Result<()>;

/// What `read` makes of a file that begins with these letters; `None` of a folder or another file. It is given the size of the file, and what
/// fills a buffer with its beginning.
///
/// # Errors
/// `Io` where the file cannot be read, `Limit` where it is too large for this machine, and those of `read`.
pub fn with_beginning<T>(
    file: &Path,
    letters: [u8; 4],
    read: impl FnOnce(usize, Begin<'_>) -> Result<T>,
) -> Result<Option<T>> {
    if !file.is_file() {
        return Ok(None);
    }
    let failed = |e: std::io::Error| unreadable(file, &e);
    let open = fs::File::open(file).map_err(failed)?;
    let size = open.metadata().map_err(failed)?.len();
    let size = usize::try_from(size).map_err(|_| too_large(file))?;
    let begin = |to: &mut [u8]| {
        let mut open = &open;
        open.rewind()
            .and_then(|()| open.read_exact(to))
            .map_err(failed)
    };
    let mut magic = [0; 4];
    if size < magic.len() {
        return Ok(None);
    }
    begin(&mut magic)?;
    match magic == letters {
        true => read(size, &begin).map(Some),
        false => Ok(None),
    }
}

fn too_large(file: &Path) -> Error {
    let message = format!("`{}` is too large for this machine", file.display());
    Error::new(ErrorCode::Limit, message)
}

/// The settings of a model, which stand for it where its weights lie beside them.
const CONFIG: &str = "config.json";

/// Whether a model is settings and weights, whose network may end a text before the settings alone would.
fn is_of_transformers(model: &Path) -> bool {
    model.ends_with(CONFIG) || model.extension().is_some_and(|end| end == "safetensors")
}

/// What says where the weights of a folder without models lie: they themselves, or their list.
const WEIGHTS: [&str; 2] = ["model.safetensors", "model.safetensors.index.json"];

/// The model of a folder of Hugging Face's layout: `model.onnx`, or the only one that there is; the settings where there are
/// weights of transformers in place of one.
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
        (None, []) if WEIGHTS.iter().any(|name| path.join(name).is_file()) => Ok(path.join(CONFIG)),
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
