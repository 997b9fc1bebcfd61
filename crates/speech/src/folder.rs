//! A folder with the encoder, the decoder, the tokenizer and the settings of a model of speech.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kilim_core::{Error, ErrorCode, Keep, Result};
use kilim_formats::ggml::{DECODED, ENCODED};
use kilim_text::{Tokenizer, parse_settings, with_beginning};

use crate::ggml::GgmlSpeech;
use crate::settings::{Files, Settings};

/// A model of speech as Optimum and transformers.js lay it out: `encoder_model.onnx` and `decoder_model_merged.onnx` in the folder or in
/// `onnx/`, with `config.json`, `generation_config.json`, `preprocessor_config.json` and `tokenizer.json`. Or a Whisper file of whisper.cpp,
/// which has all of it.
pub struct Folder {
    path: PathBuf,
    /// What a file says that is all of the model.
    inside: Option<GgmlSpeech>,
    pub encoder: PathBuf,
    pub decoder: PathBuf,
    pub settings: Settings,
}

impl Folder {
    /// `path` is a folder or a file of whisper.cpp. `kind` is what names of models end with behind `_`, where there are several: `fp16`,
    /// `q4`, `quantized`.
    ///
    /// # Errors
    /// `Io` where a file is missing or cannot be read; those of [`Settings::read`] and [`GgmlSpeech::read`].
    pub fn open(path: &Path, kind: Option<&str>) -> Result<Folder> {
        if let Some(inside) = with_beginning(path, *b"lmgg", GgmlSpeech::read)? {
            return Ok(Folder {
                settings: Settings::read(inside.files())?,
                encoder: path.to_path_buf(),
                decoder: path.to_path_buf(),
                path: path.to_path_buf(),
                inside: Some(inside),
            });
        }
        let config = path.join("config.json");
        let config = read(&config)?.ok_or_else(|| missing(&config))?;
        let generation = read(&path.join("generation_config.json"))?;
        let preprocessor = match read(&path.join("preprocessor_config.json"))? {
            Some(text) => Some(text),
            None => extractor(&path.join("processor_config.json"))?,
        };
        let settings = Settings::read(Files {
            config: &config,
            generation: generation.as_deref(),
            preprocessor: preprocessor.as_deref(),
        })?;
        Ok(Folder {
            encoder: model(path, "encoder_model", kind)?,
            decoder: model(path, "decoder_model_merged", kind)?,
            path: path.to_path_buf(),
            inside: None,
            settings,
        })
    }

    /// # Errors
    /// Those of [`Tokenizer::open`].
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        match &self.inside {
            Some(inside) => Tokenizer::of_bytes(inside.tokenizer.as_bytes(), &self.path),
            None => Tokenizer::open(&self.path.join("tokenizer.json")),
        }
    }

    /// The outputs of the encoder's session and of the decoder's, where one file has both: [`SessionOptions::outputs`].
    ///
    /// [`SessionOptions::outputs`]: kilim_core::SessionOptions::outputs
    pub fn outputs(&self) -> [Option<Keep>; 2] {
        let one = self.inside.is_some();
        [
            one.then(|| Keep::new(ENCODED)),
            one.then(|| Keep::new(DECODED)),
        ]
    }
}

fn model(path: &Path, name: &str, kind: Option<&str>) -> Result<PathBuf> {
    let file = match kind {
        Some(kind) => format!("{name}_{kind}.onnx"),
        None => format!("{name}.onnx"),
    };
    let places = [path.join("onnx").join(&file), path.join(&file)];
    let found = places.iter().find(|place| place.is_file());
    found.cloned().ok_or_else(|| missing(&places[1]))
}

/// The text of a file; `None` where there is none.
fn read(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => {
            let message = format!("cannot read `{}`: {e}", file.display());
            Err(Error::new(ErrorCode::Io, message))
        }
    }
}

/// Where newer versions of transformers keep what `preprocessor_config.json` held.
fn extractor(file: &Path) -> Result<Option<String>> {
    let Some(text) = read(file)? else {
        return Ok(None);
    };
    let settings: serde_json::Value = parse_settings(&file.display().to_string(), &text)?;
    Ok(settings.get("feature_extractor").map(ToString::to_string))
}

fn missing(file: &Path) -> Error {
    let message = format!("there is no `{}`", file.display());
    let e = Error::new(ErrorCode::Io, message);
    e.with_hint("a folder of speech has an encoder and a merged decoder, as Optimum exports them")
}
