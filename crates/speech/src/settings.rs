//! What the files beside a model of speech say of it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use kilim_core::{Error, ErrorCode, Graph, Result};
use kilim_text::parse_settings as parse;
use serde::Deserialize;

use crate::mel::LogMel;
use crate::rules::{Rules, Times};

/// Texts of the files that lie beside a model.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    /// `config.json`.
    pub config: &'a str,
    /// `generation_config.json`, where there is one.
    pub generation: Option<&'a str>,
    /// `preprocessor_config.json`, where there is one.
    pub preprocessor: Option<&'a str>,
}

/// What a folder says of its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What the encoder hears.
    pub ear: Ear,
    /// Samples a second.
    pub rate: usize,
    /// Samples that the model hears at once.
    pub window: usize,
    /// The word that begins a text.
    pub start: u32,
    /// Words that a window has at most, with its prompt.
    pub most: Most,
    /// Languages that the model knows, by their codes; none where it knows one alone.
    pub languages: Words,
    /// What it can do with them, `transcribe` and `translate`.
    pub tasks: Words,
    /// Words that it never says.
    never: Vec<u32>,
    /// Words that it does not begin a window with.
    not_first: Vec<u32>,
    times: Option<Times>,
    /// What the decoder's caches and ends are like.
    pub text: kilim_text::Settings,
}

/// Words that stand for something, with its name, in the order of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words(Vec<(String, u32)>);

impl Words {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The word for a name.
    pub fn get(&self, name: &str) -> Option<u32> {
        let found = self.0.iter().find(|(known, _)| known == name)?;
        Some(found.1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(name, word)| (name.as_str(), *word))
    }
}

/// What an encoder hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Ear {
    /// A log-mel spectrum of a whole window, silence behind what is there.
    LogMel(LogMel),
    /// The samples, as many as there are.
    Samples,
}

/// How many words there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Most {
    Words(usize),
    /// So many for a second of sound.
    EachSecond(f64),
}

/// Samples a second that a model may ask for.
pub(crate) const RATES: RangeInclusive<usize> = 1_000..=768_000;

/// A model that is not told so says no more words than this.
const WORDS: usize = 448;

/// Temperatures that Whisper's program draws words at, one after the other (github.com/openai/whisper, `transcribe.py`).
const TEMPERATURES: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];

/// The words a second that Moonshine's authors let their model say (github.com/moonshine-ai/moonshine).
const MOONSHINE_WORDS_EACH_SECOND: f64 = 6.5;
/// Seconds of sound that Moonshine was trained on at most (Jeffries et al., Moonshine: Speech Recognition for Live Transcription, 2024).
const MOONSHINE_SECONDS: usize = 30;

impl Settings {
    /// # Errors
    /// `InvalidModel` where a file cannot be understood, `Unsupported` for a model that is neither Whisper nor Moonshine.
    pub fn read(files: Files<'_>) -> Result<Settings> {
        let config: Config = parse("config.json", files.config)?;
        let generation = match files.generation {
            Some(text) => parse("generation_config.json", text)?,
            None => Generation::default(),
        };
        let text = kilim_text::Settings::read(kilim_text::Files {
            genai: None,
            config: Some(files.config),
            generation: files.generation,
        })?;
        let start = generation.decoder_start_token_id;
        let start = start.or(config.decoder_start_token_id).ok_or_else(|| {
            let message = "`config.json` does not say with which word a text begins";
            Error::new(ErrorCode::InvalidModel, message)
        })?;
        let preprocessor = files.preprocessor.unwrap_or("{}");
        match config.model_type.as_str() {
            "whisper" => {
                let mel = LogMel::read(preprocessor)?;
                Ok(whisper(config, generation, mel, start, text))
            }
            "moonshine" => {
                let sound: Sound = parse("preprocessor_config.json", preprocessor)?;
                if !RATES.contains(&sound.sampling_rate) {
                    let message = "the rate of the model's sound is out of range";
                    let e = Error::new(ErrorCode::InvalidModel, message);
                    return Err(e.with_got(sound.sampling_rate));
                }
                Ok(Settings {
                    ear: Ear::Samples,
                    rate: sound.sampling_rate,
                    window: sound.sampling_rate.saturating_mul(MOONSHINE_SECONDS),
                    start,
                    most: Most::EachSecond(MOONSHINE_WORDS_EACH_SECOND),
                    languages: Words::default(),
                    tasks: Words::default(),
                    never: Vec::new(),
                    not_first: Vec::new(),
                    times: None,
                    text,
                })
            }
            other => {
                let e = Error::new(ErrorCode::Unsupported, "a model of speech of another kind");
                let e = e.with_got(other).with_expected("whisper or moonshine");
                Err(e.with_hint("`config.json` says what it is, as `model_type`"))
            }
        }
    }

    /// The encoder as it is loaded: where it hears a spectrum, it takes samples.
    ///
    /// # Errors
    /// Those of [`LogMel::before`].
    pub fn listening(&self, encoder: Graph) -> Result<Graph> {
        match &self.ear {
            Ear::LogMel(mel) => mel.before(encoder, "input_features"),
            Ear::Samples => Ok(encoder),
        }
    }

    /// Whether the model can say when a word was said.
    pub fn has_times(&self) -> bool {
        self.times.is_some()
    }

    /// The rules of a window, with times or without.
    pub fn rules(&self, times: bool) -> Rules {
        Rules {
            never: self.never.clone(),
            not_first: self.not_first.clone(),
            times: self.times.clone().filter(|_| times),
            text_ends: self.text.end.list().first().copied().unwrap_or(self.start),
        }
    }

    /// What the decoder is given behind the language, before the first word.
    pub(crate) fn no_times(&self) -> Option<u32> {
        self.times.as_ref().map(|times| times.none)
    }

    /// The words for times, where there are such.
    pub fn times(&self) -> Option<&Times> {
        self.times.as_ref()
    }

    /// Whisper's word for a window in which nobody speaks, which stands before the one for no times.
    pub(crate) fn nothing_said(&self) -> Option<u32> {
        let word = self.times.as_ref()?.none.checked_sub(1)?;
        let named = self.languages.iter().chain(self.tasks.iter());
        let taken = word == self.start || named.into_iter().any(|(_, id)| id == word);
        (!taken).then_some(word)
    }

    /// How freely words are drawn where nothing else is wanted: Whisper's temperatures for Whisper, the likeliest words for Moonshine.
    pub fn temperatures(&self) -> &'static [f64] {
        match self.most {
            Most::Words(_) => &TEMPERATURES,
            Most::EachSecond(_) => &TEMPERATURES[..1],
        }
    }

    /// Words of a window of so many samples, with its prompt.
    pub(crate) fn most_words(&self, samples: usize) -> usize {
        match self.most {
            Most::Words(words) => words,
            Most::EachSecond(words) => (samples as f64 / self.rate as f64 * words).ceil() as usize,
        }
    }
}

fn whisper(
    config: Config,
    generation: Generation,
    mel: LogMel,
    start: u32,
    text: kilim_text::Settings,
) -> Settings {
    let places = config.max_source_positions.filter(|&n| n > 0);
    let step = places.map_or(0.02, |places| mel.chunk_length as f64 / places as f64);
    let times = generation.no_timestamps_token_id.map(|none| Times {
        first: none.saturating_add(1),
        step,
        none,
        latest_begin: generation.max_initial_timestamp_index,
    });
    let most = [generation.max_length, config.max_target_positions];
    let most = most.into_iter().flatten().min();
    let several = generation.is_multilingual.unwrap_or(true);
    // `<|en|>` stands for `en`.
    let code = |name: String| name.trim_matches(['<', '|', '>']).to_string();
    let languages = generation.lang_to_id.into_iter().filter(|_| several);
    Settings {
        rate: mel.sampling_rate,
        window: mel.samples(),
        start,
        most: Most::Words(most.unwrap_or(WORDS)),
        languages: Words(languages.map(|(name, id)| (code(name), id)).collect()),
        tasks: Words(generation.task_to_id.into_iter().collect()),
        never: generation.suppress_tokens.unwrap_or(config.suppress_tokens),
        not_first: generation
            .begin_suppress_tokens
            .unwrap_or(config.begin_suppress_tokens),
        times,
        ear: Ear::LogMel(mel),
        text,
    }
}

/// `config.json`, as far as it is of interest.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    model_type: String,
    decoder_start_token_id: Option<u32>,
    max_source_positions: Option<usize>,
    max_target_positions: Option<usize>,
    #[serde(default, deserialize_with = "or_none")]
    suppress_tokens: Vec<u32>,
    #[serde(default, deserialize_with = "or_none")]
    begin_suppress_tokens: Vec<u32>,
}

/// `generation_config.json`, as far as it is of interest.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Generation {
    decoder_start_token_id: Option<u32>,
    max_length: Option<usize>,
    is_multilingual: Option<bool>,
    lang_to_id: BTreeMap<String, u32>,
    task_to_id: BTreeMap<String, u32>,
    no_timestamps_token_id: Option<u32>,
    max_initial_timestamp_index: Option<u32>,
    suppress_tokens: Option<Vec<u32>>,
    begin_suppress_tokens: Option<Vec<u32>>,
}

/// `preprocessor_config.json` of a model that hears samples.
#[derive(Deserialize)]
#[serde(default)]
struct Sound {
    sampling_rate: usize,
}

impl Default for Sound {
    fn default() -> Self {
        Sound {
            sampling_rate: 16_000,
        }
    }
}

/// A list, or `null` for none.
fn or_none<'d, D: serde::Deserializer<'d>>(from: D) -> std::result::Result<Vec<u32>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
