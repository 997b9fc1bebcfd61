//! What the files beside a model say of it.

use kilim_core::{Error, ErrorCode, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::sampler::Sampling;

/// Numbers of words: files have one, or a list of them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Ids {
    One(u32),
    Several(Vec<u32>),
    #[default]
    None,
}

impl Ids {
    pub fn contains(&self, id: u32) -> bool {
        self.list().contains(&id)
    }

    /// All of them.
    pub fn list(&self) -> &[u32] {
        match self {
            Ids::One(id) => std::slice::from_ref(id),
            Ids::Several(ids) => ids,
            Ids::None => &[],
        }
    }
}

/// What a folder says of its model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The words that end a text.
    pub end: Ids,
    /// Words that the model can look back on, with those it is given.
    pub context: Option<usize>,
    /// Heads of a cache, and numbers of a head, where the model leaves them open.
    pub heads: Option<usize>,
    pub head_size: Option<usize>,
    /// Caches that hold the last words alone.
    pub windows: Windows,
    /// How words are to be chosen.
    pub sampling: Sampling,
    /// Names of the model's inputs and outputs.
    pub ports: PortNames,
}

/// The caches of some layers, which hold the last words of a text alone: the model forgets others by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows {
    pub layers: Vec<usize>,
    /// Words that each of these caches has room for.
    pub places: usize,
}

/// Texts of the files that lie beside a model, where there are such files.
#[derive(Clone, Copy, Default)]
pub struct Files<'a> {
    /// `genai_config.json`.
    pub genai: Option<&'a str>,
    /// `config.json`, which is not read beside a `genai_config.json`.
    pub config: Option<&'a str>,
    /// `generation_config.json`, which is read beside a `config.json`.
    pub generation: Option<&'a str>,
}

impl Settings {
    /// What files say; where there are none, the usual names and the best word always.
    ///
    /// # Errors
    /// `InvalidModel` where a file cannot be understood, `InvalidValue` for numbers that are out of range.
    pub fn read(files: Files<'_>) -> Result<Settings> {
        if let Some(text) = files.genai {
            return parse_settings::<GenAi>("genai_config.json", text)?.settings();
        }
        let read = |name, text: Option<&str>| match text {
            Some(text) => parse_settings(name, text),
            None => Ok(HuggingFace::default()),
        };
        let config = read("config.json", files.config)?;
        let settings = config.settings(read("generation_config.json", files.generation)?);
        settings.sampling.check()?;
        Ok(settings)
    }
}

/// What a file of settings says, JSON by the name `name`.
///
/// # Errors
/// `InvalidModel` where it cannot be understood.
pub fn parse_settings<T: DeserializeOwned>(name: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| {
        let message = format!("`{name}` cannot be understood: {e}");
        Error::new(ErrorCode::InvalidModel, message)
    })
}

/// Names of inputs and outputs. `%d` stands for the number of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct PortNames {
    pub words: String,
    pub mask: String,
    pub positions: String,
    pub logits: String,
    /// What an encoder made, which each step attends to, `[1, places, size]`.
    pub source: String,
    /// Ones for all places of it, `[1, places]`.
    pub source_mask: String,
    pub caches: Vec<CacheNames>,
}

/// Names of a cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheNames {
    /// What a step gives of it.
    pub given: String,
    /// What the next step takes.
    pub taken: String,
    /// Whether it is of cross-attention, made of what an encoder made: the first step of a text gives it, and it stays.
    pub cross: bool,
    /// The number of its layer, where the name has one.
    pub layer: Option<usize>,
}

impl CacheNames {
    fn own([given, taken]: [String; 2]) -> CacheNames {
        CacheNames {
            given,
            taken,
            cross: false,
            layer: None,
        }
    }
}

impl Default for PortNames {
    /// The names that Optimum, transformers.js and onnxruntime-genai give.
    fn default() -> Self {
        let caches = [
            ["present.%d.key", "past_key_values.%d.key"],
            ["present.%d.value", "past_key_values.%d.value"],
            ["present_conv.%d", "past_conv.%d"],
            ["present.%d.conv", "past.%d.conv"],
            ["present.%d.decoder.key", "past_key_values.%d.decoder.key"],
            [
                "present.%d.decoder.value",
                "past_key_values.%d.decoder.value",
            ],
        ];
        let cross = ["key", "value"].map(|part| CacheNames {
            given: format!("present.%d.encoder.{part}"),
            taken: format!("past_key_values.%d.encoder.{part}"),
            cross: true,
            layer: None,
        });
        let own = caches.map(|pair| CacheNames::own(pair.map(str::to_string)));
        PortNames {
            words: "input_ids".to_string(),
            mask: "attention_mask".to_string(),
            positions: "position_ids".to_string(),
            logits: "logits".to_string(),
            source: "encoder_hidden_states".to_string(),
            source_mask: "encoder_attention_mask".to_string(),
            caches: own.into_iter().chain(cross).collect(),
        }
    }
}

/// `config.json`, and the part of `generation_config.json` that is of interest; both may lack anything.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct HuggingFace {
    eos_token_id: Ids,
    max_position_embeddings: Option<usize>,
    num_attention_heads: Option<usize>,
    num_key_value_heads: Option<usize>,
    hidden_size: Option<usize>,
    /// Decoders beside an encoder have names of their own.
    decoder_attention_heads: Option<usize>,
    decoder_num_attention_heads: Option<usize>,
    decoder_num_key_value_heads: Option<usize>,
    d_model: Option<usize>,
    max_target_positions: Option<usize>,
    head_dim: Option<usize>,
    #[serde(flatten)]
    search: Search,
}

/// How words are to be chosen, as both layouts say it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Search {
    do_sample: bool,
    temperature: Option<f64>,
    top_k: Option<usize>,
    top_p: Option<f64>,
    min_p: Option<f64>,
    repetition_penalty: Option<f64>,
}

impl Search {
    fn sampling(&self) -> Sampling {
        let drawn = self.do_sample;
        Sampling {
            repetition_penalty: self.repetition_penalty.unwrap_or(1.0),
            temperature: if drawn {
                self.temperature.unwrap_or(1.0)
            } else {
                0.0
            },
            top_k: if drawn { self.top_k.unwrap_or(0) } else { 0 },
            top_p: if drawn {
                self.top_p.unwrap_or(1.0)
            } else {
                1.0
            },
            min_p: if drawn {
                self.min_p.unwrap_or(0.0)
            } else {
                0.0
            },
            ..Sampling::default()
        }
    }
}

impl HuggingFace {
    /// `generation` says how to generate, `self` what the model is.
    pub fn settings(self, generation: HuggingFace) -> Settings {
        let heads = self.decoder_attention_heads;
        let heads = heads.or(self.decoder_num_attention_heads);
        let heads = heads.or(self.num_attention_heads);
        let size = self.hidden_size.or(self.d_model);
        let head_size = self
            .head_dim
            .or_else(|| Some(size? / heads.filter(|&heads| heads > 0)?));
        let cached = self.decoder_num_key_value_heads;
        Settings {
            end: match generation.eos_token_id {
                Ids::None => self.eos_token_id,
                ids => ids,
            },
            context: self.max_target_positions.or(self.max_position_embeddings),
            heads: cached.or(self.num_key_value_heads).or(heads),
            head_size,
            windows: Windows::default(),
            sampling: generation.search.sampling(),
            ports: PortNames::default(),
        }
    }
}

/// `genai_config.json`.
#[derive(Deserialize)]
pub struct GenAi {
    model: GenAiModel,
    #[serde(default)]
    search: Search,
}

#[derive(Deserialize)]
struct GenAiModel {
    #[serde(default)]
    eos_token_id: Ids,
    context_length: Option<usize>,
    decoder: GenAiDecoder,
}

#[derive(Deserialize)]
struct GenAiDecoder {
    #[cfg_attr(
        not(feature = "folder"),
        expect(dead_code, reason = "the page reads it")
    )]
    #[serde(default = "model_file")]
    filename: String,
    head_size: Option<usize>,
    num_key_value_heads: Option<usize>,
    #[serde(default)]
    inputs: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    outputs: serde_json::Map<String, serde_json::Value>,
    sliding_window: Option<GenAiWindow>,
}

#[derive(Deserialize)]
struct GenAiWindow {
    #[serde(default)]
    window_size: usize,
    #[serde(default)]
    layers: Vec<usize>,
    /// Words that caches hold beyond the window. Builders before 0.18 did not write it: their caches hold all words.
    cache_slack: Option<usize>,
}

fn model_file() -> String {
    "model.onnx".to_string()
}

impl GenAi {
    /// The name of the model's file.
    #[cfg(feature = "folder")]
    pub fn file(&self) -> &str {
        &self.model.decoder.filename
    }

    /// # Errors
    /// `InvalidValue` for numbers that are out of range.
    pub fn settings(self) -> Result<Settings> {
        let decoder = &self.model.decoder;
        let sampling = self.search.sampling();
        sampling.check()?;
        Ok(Settings {
            ports: decoder.ports(),
            end: self.model.eos_token_id,
            context: self.model.context_length,
            heads: decoder.num_key_value_heads,
            head_size: decoder.head_size,
            windows: decoder.windows(),
            sampling,
        })
    }
}

impl GenAiDecoder {
    fn windows(&self) -> Windows {
        let Some(window) = &self.sliding_window else {
            return Windows::default();
        };
        match window.cache_slack {
            Some(slack) => Windows {
                layers: window.layers.clone(),
                places: window.window_size.saturating_add(slack),
            },
            None => Windows::default(),
        }
    }

    fn ports(&self) -> PortNames {
        let usual = PortNames::default();
        let input = |name: &str| self.inputs.get(name)?.as_str().map(str::to_string);
        let output = |name: &str| self.outputs.get(name)?.as_str().map(str::to_string);
        // A template of what is given has one of what is taken beside it, under a name that differs in one word.
        let told = self.outputs.keys().filter_map(|key| {
            let taken = key.strip_prefix("present_")?;
            Some(CacheNames::own([
                output(key)?,
                input(&format!("past_{taken}"))?,
            ]))
        });
        let mut caches: Vec<CacheNames> = told.collect();
        caches.extend(usual.caches);
        PortNames {
            words: input("input_ids").unwrap_or(usual.words),
            mask: input("attention_mask").unwrap_or(usual.mask),
            positions: input("position_ids").unwrap_or(usual.positions),
            logits: output("logits").unwrap_or(usual.logits),
            caches,
            ..usual
        }
    }
}

impl PortNames {
    /// The names of the cache that the output `name` gives, if it gives one.
    pub fn cache(&self, name: &str) -> Option<CacheNames> {
        self.caches.iter().find_map(|cache| {
            let (before, behind) = cache.given.split_once("%d")?;
            let layer = name.strip_prefix(before)?.strip_suffix(behind)?;
            let number = !layer.is_empty() && layer.bytes().all(|b| b.is_ascii_digit());
            number.then(|| CacheNames {
                given: name.to_string(),
                taken: cache.taken.replacen("%d", layer, 1),
                cross: cache.cross,
                layer: layer.parse().ok(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hugging_faces_files_say_what_is_needed() {
        let config = r#"{"eos_token_id": 2, "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 99}"#;
        let generation =
            r#"{"eos_token_id": [2, 7], "do_sample": true, "temperature": 0.5, "top_k": 9}"#;
        let read = |text| serde_json::from_str::<HuggingFace>(text).expect("a config");
        let settings = read(config).settings(read(generation));
        assert_eq!(settings.end, Ids::Several(vec![2, 7]));
        assert_eq!((settings.heads, settings.head_size), (Some(4), Some(16)));
        assert_eq!(settings.context, Some(99));
        assert_eq!(settings.sampling.temperature, 0.5);
        assert_eq!(settings.sampling.top_k, 9);
        let settings = read(config).settings(HuggingFace::default());
        assert!(settings.end.contains(2) && !settings.end.contains(7));
        assert_eq!(settings.sampling, Sampling::default());
    }

    #[test]
    fn genais_file_names_the_ports() {
        let text = r#"{"model": {"eos_token_id": 3, "decoder": {"filename": "a.onnx", "head_size": 8,
            "inputs": {"input_ids": "ids", "past_key_names": "old.%d.k"},
            "outputs": {"present_key_names": "new.%d.k"}}}, "search": {"do_sample": false, "top_k": 50}}"#;
        let config: GenAi = serde_json::from_str(text).expect("a config");
        assert_eq!(config.file(), "a.onnx");
        let settings = config.settings().expect("settings");
        assert_eq!(settings.ports.words, "ids");
        let taken = |name| settings.ports.cache(name).map(|cache| cache.taken);
        assert_eq!(taken("new.12.k").as_deref(), Some("old.12.k"));
        assert_eq!(taken("new.x.k"), None);
        let usual = taken("present.0.key");
        assert_eq!(usual.as_deref(), Some("past_key_values.0.key"));
        let cross = settings.ports.cache("present.3.encoder.value");
        assert!(cross.is_some_and(|cache| cache.cross));
        assert_eq!(settings.sampling, Sampling::default());
    }

    #[test]
    fn genais_file_names_the_caches_of_windows() {
        let read = |window: &str| {
            let text = format!(r#"{{"model": {{"decoder": {{"sliding_window": {window}}}}}}}"#);
            let config: GenAi = serde_json::from_str(&text).expect("a config");
            config.settings().expect("settings").windows
        };
        let windows = read(r#"{"window_size": 8, "layers": [0, 2], "cache_slack": 3}"#);
        assert_eq!((windows.layers, windows.places), (vec![0, 2], 11));
        let whole = read(r#"{"window_size": 8, "layers": [0, 2], "slide_inputs": false}"#);
        assert_eq!(whole, Windows::default());
    }
}
