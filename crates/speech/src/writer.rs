//! A decoder of speech: what an encoder made goes in, words come out.

use kilim_core::{Datum, Error, ErrorCode, Result, RunOptions, Session};
use kilim_text::{Decoder, Sampler, Sampling};
use serde::{Deserialize, Serialize};

use crate::settings::{Settings, Words};

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
}

/// What was said in a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heard {
    /// The words, those for times among them; neither the prompt nor the word that ends the text.
    pub words: Vec<u32>,
    /// The code of the language, where the model knows several.
    pub language: Option<String>,
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

    /// The words of the window that was heard last, the most likely one always.
    ///
    /// # Errors
    /// Those of [`Decoder::step`]; `InvalidValue` for a language or a task that the model does not know, and for times where it has none.
    pub async fn words(
        &mut self,
        decoding: &mut Session,
        wanted: &Wanted,
        options: &RunOptions,
    ) -> Result<Heard> {
        self.decoder.restart()?;
        if wanted.times && !self.settings.has_times() {
            let message = "this model does not say when a word was said";
            return Err(Error::new(ErrorCode::InvalidValue, message));
        }
        let (mut new, language) = self.prompt(decoding, wanted, options).await?;
        let rules = self.settings.rules(wanted.times);
        let most = self.settings.most_words(self.samples);
        let mut sampler = Sampler::new(Sampling::default())?;
        let mut words = Vec::new();
        while self.decoder.length() + new.len() < most {
            let scores = self.decoder.step(decoding, &new, options);
            let mut scores = scores.await?;
            rules.apply(&words, &mut scores);
            let word = sampler.pick(&mut scores)?;
            if self.settings.text.end.contains(word) {
                break;
            }
            words.push(word);
            new = vec![word];
        }
        Ok(Heard { words, language })
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
