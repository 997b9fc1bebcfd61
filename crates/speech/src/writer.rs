//! A decoder of speech: what an encoder made goes in, words come out.

use kilim_core::{Datum, Error, ErrorCode, Result, RunOptions, Session};
use kilim_text::{Decoder, Sampler, Sampling};
use serde::{Deserialize, Serialize};

use crate::rules::log_sum_exp;
use crate::settings::{Settings, Words};

/// The mean of the logarithms of the words' probabilities below which a text is doubted, and the probability above which such a text is
/// none: Whisper's (github.com/openai/whisper, `transcribe.py`).
const DOUBTED: f64 = -1.0;
const SILENT: f64 = 0.6;

/// What is to be made of a window's sound. As JSON it is what the npm package has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Wanted {
    /// The code of the language, `en` for instance. If nothing is said, the model says which it is.
    pub language: Option<String>,
    /// Whether English is wanted, whatever was said.
    pub translate: bool,
    /// Whether times are wanted.
    pub times: bool,
    /// How freely words are drawn, one after the other until a text has an end and is not doubted: 0 takes the likeliest word always. If
    /// nothing is said, [`Settings::temperatures`].
    pub temperatures: Option<Vec<f64>>,
}

/// What was said in a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heard {
    /// The words, those for times among them; neither the prompt nor the word that ends the text. None where nothing was said.
    pub words: Vec<u32>,
    /// The code of the language, where the model knows several.
    pub language: Option<String>,
    /// The mean of the natural logarithms of the words' probabilities, that of the end among them: 0 where the model is sure.
    pub certainty: f64,
    /// Whether the model may say no more words, and had not come to an end.
    pub cut: bool,
}

/// A decoder in the middle of a window. Its session is given at each call, the same one always.
pub struct Writer {
    decoder: Decoder,
    settings: Settings,
    /// Samples of the window.
    samples: usize,
}

impl Writer {
    /// # Errors
    /// Those of [`Decoder::new`].
    pub fn new(decoding: &Session, settings: Settings) -> Result<Writer> {
        Ok(Writer {
            decoder: Decoder::new(decoding, &settings.text)?,
            settings,
            samples: 0,
        })
    }

    /// What the folder says of the model.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Begins a window of so many samples. `source` is what an encoder made of it, `[1, places, size]`.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn attend(&mut self, source: Datum, samples: usize) -> Result<()> {
        self.samples = samples;
        self.decoder.attend(source)
    }

    /// The words of the window that was heard last. A text that has no end, or whose words the model doubts, is made again, with words that
    /// are drawn more and more freely, as [`Wanted::temperatures`] says; the last one is taken whatever it is. A text that is doubted
    /// is none where the model says that nobody speaks.
    ///
    /// # Errors
    /// Those of [`Decoder::step`]; `InvalidValue` for a language or a task that the model does not know, for times where it has none, and for
    /// temperatures that are none.
    pub async fn words(
        &mut self,
        decoding: &mut Session,
        wanted: &Wanted,
        options: &RunOptions,
    ) -> Result<Heard> {
        if wanted.times && !self.settings.has_times() {
            let message = "this model does not say when a word was said";
            return Err(Error::new(ErrorCode::InvalidValue, message));
        }
        let given = wanted.temperatures.as_deref();
        let temperatures = given.unwrap_or(self.settings.temperatures());
        let mut asked = wanted.clone();
        let (mut silence, mut made) = (None, None);
        for &temperature in temperatures {
            let heard = self.attempt(decoding, &asked, temperature, options);
            let heard = heard.await?;
            let doubted = heard.certainty < DOUBTED;
            if doubted && self.is_silent(&mut silence, decoding, options).await? {
                return Ok(Heard {
                    words: Vec::new(),
                    cut: false,
                    ..heard
                });
            }
            if !doubted && !heard.cut {
                return Ok(heard);
            }
            asked.language.clone_from(&heard.language);
            made = Some(heard);
        }
        made.ok_or_else(|| {
            let message = "no temperature is given to draw words at";
            Error::new(ErrorCode::InvalidValue, message)
        })
    }

    /// A text for the window.
    async fn attempt(
        &mut self,
        decoding: &mut Session,
        wanted: &Wanted,
        temperature: f64,
        options: &RunOptions,
    ) -> Result<Heard> {
        let mut sampler = Sampler::new(Sampling {
            temperature,
            ..Sampling::default()
        })?;
        self.decoder.restart()?;
        let (mut new, language) = self.prompt(decoding, wanted, options).await?;
        let rules = self.settings.rules(wanted.times);
        let most = self.settings.most_words(self.samples);
        let (mut words, mut sum, mut cut) = (Vec::new(), 0.0, true);
        while self.decoder.length() + new.len() < most {
            let scores = self.decoder.step(decoding, &new, options);
            let mut scores = scores.await?;
            rules.apply(&words, &mut scores);
            let all = log_sum_exp(&scores);
            let word = sampler.pick(&mut scores.clone())?;
            sum += scores.get(word as usize).map_or(0.0, |score| score - all);
            if self.settings.text.end.contains(word) {
                cut = false;
                break;
            }
            words.push(word);
            new = vec![word];
        }
        Ok(Heard {
            certainty: sum / (words.len() + 1) as f64,
            words,
            language,
            cut,
        })
    }

    /// Whether the model says that nobody speaks in the window. `known` is its answer where it was asked before.
    async fn is_silent(
        &mut self,
        known: &mut Option<bool>,
        decoding: &mut Session,
        options: &RunOptions,
    ) -> Result<bool> {
        if let Some(known) = known {
            return Ok(*known);
        }
        let Some(word) = self.settings.nothing_said() else {
            return Ok(false);
        };
        self.decoder.restart()?;
        let start = [self.settings.start];
        let scores = self.decoder.step(decoding, &start, options).await?;
        let score = scores.get(word as usize).copied();
        let probability = score.map_or(0.0, |score| (score - log_sum_exp(&scores)).exp());
        Ok(*known.insert(probability > SILENT))
    }

    /// The words before the first one, as far as the decoder does not know them yet, and the language.
    async fn prompt(
        &mut self,
        decoding: &mut Session,
        wanted: &Wanted,
        options: &RunOptions,
    ) -> Result<(Vec<u32>, Option<String>)> {
        let settings = &self.settings;
        let mut prompt = vec![settings.start];
        let mut language = None;
        if !settings.languages.is_empty() {
            let code = match &wanted.language {
                Some(code) => code.clone(),
                None => {
                    let scores = self.decoder.step(decoding, &prompt, options);
                    let scores = scores.await?;
                    prompt.clear();
                    likeliest(&self.settings, &scores)?
                }
            };
            let id = self.settings.languages.get(&code);
            prompt.push(id.ok_or_else(|| unknown("language", &code, &self.settings.languages))?);
            let task = match wanted.translate {
                true => "translate",
                false => "transcribe",
            };
            let tasks = &self.settings.tasks;
            let id = tasks.get(task);
            prompt.push(id.ok_or_else(|| unknown("task", task, tasks))?);
            language = Some(code);
        } else if wanted.language.is_some() || wanted.translate {
            let message = "this model knows one language alone, and does not translate";
            return Err(Error::new(ErrorCode::InvalidValue, message));
        }
        if !wanted.times {
            prompt.extend(self.settings.no_times());
        }
        Ok((prompt, language))
    }
}

/// The language with the highest score.
fn likeliest(settings: &Settings, scores: &[f64]) -> Result<String> {
    let score = |id: u32| scores.get(id as usize).copied().filter(|s| !s.is_nan());
    let known = settings.languages.iter();
    let scored = known.filter_map(|(code, id)| Some((code, score(id)?)));
    let best = scored.max_by(|a, b| a.1.total_cmp(&b.1));
    best.map(|(code, _)| code.to_string()).ok_or_else(|| {
        let message = "the model gives no language a score that is a number";
        Error::new(ErrorCode::InvalidValue, message)
    })
}

fn unknown(what: &str, got: &str, known: &Words) -> Error {
    let known: Vec<&str> = known.names().collect();
    let message = format!("this model does not know the {what} `{got}`");
    Error::new(ErrorCode::InvalidValue, message).with_known(got, &known)
}
