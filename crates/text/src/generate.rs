//! From a prompt to a text.

use std::sync::Arc;

use kilim_core::{AbortSignal, Error, ErrorCode, Result, RunOptions, Session};
use web_time::Instant;

use crate::decoder::Decoder;
use crate::sampler::{Sampler, Sampling};
use crate::settings::Settings;
use crate::stop::Stops;
use crate::tokenizer::Tokenizer;

/// What ends a text, and how words are chosen.
#[derive(Clone)]
pub struct Options {
    pub sampling: Sampling,
    /// Words to make at most.
    pub most: usize,
    /// Texts that end it. They are not part of it.
    pub stops: Vec<String>,
    /// Ends it before the next word.
    pub abort: Option<Arc<dyn AbortSignal>>,
}

/// Why a text ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The model gave a word that ends texts.
    Word(u32),
    /// One of [`Options::stops`] came.
    Stop(String),
    /// There are as many words as were asked for.
    Most,
    /// The model cannot look back on more words.
    Context,
    Aborted,
}

/// A text that was made.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Numbers of its words, with the one that ended it.
    pub words: Vec<u32>,
    pub text: String,
    pub ended: Ended,
    /// Words of the prompt.
    pub prompt: usize,
    /// Seconds until the first word was chosen.
    pub first: f64,
    /// Seconds from there to the last.
    pub rest: f64,
}

impl Generated {
    /// Words behind the first one in each second that they took; `None` where there are none.
    pub fn words_per_second(&self) -> Option<f64> {
        let words = self.words.len().checked_sub(1).filter(|&n| n > 0)?;
        Some(words as f64 / self.rest)
    }
}

/// Makes a text that goes on from `prompt`. `show` is told of its parts as they come.
///
/// # Errors
/// Those of [`Decoder::step`], [`Sampler::pick`] and the tokenizer; `InvalidValue` for a prompt without words, `Limit`
/// for one that is longer than the model can look back. An abort is no error.
pub async fn generate(
    session: &mut Session,
    decoder: &mut Decoder,
    tokenizer: &Tokenizer,
    settings: &Settings,
    prompt: &[u32],
    options: &Options,
    show: &mut dyn FnMut(&str),
) -> Result<Generated> {
    let context = settings.context.unwrap_or(usize::MAX);
    if decoder.length() + prompt.len() > context {
        let e = Error::new(
            ErrorCode::Limit,
            "the prompt is longer than the model can look back",
        );
        return Err(e
            .with_expected(context)
            .with_got(decoder.length() + prompt.len()));
    }
    let mut sampler = Sampler::new(options.sampling.clone())?;
    sampler.prompt(prompt);
    let run = RunOptions {
        abort: options.abort.clone(),
        ..RunOptions::default()
    };
    let mut text = Text {
        stops: Stops::new(&options.stops),
        text: String::new(),
        show,
    };
    let mut stream = tokenizer.stream();
    let mut words: Vec<u32> = Vec::new();
    let start = Instant::now();
    let (mut first, mut last) = (start, start);
    let ended = loop {
        if words.len() >= options.most {
            break Ended::Most;
        }
        if decoder.length() >= context {
            break Ended::Context;
        }
        let new = match words.last() {
            None => prompt,
            Some(word) => std::slice::from_ref(word),
        };
        let mut scores = match decoder.step(session, new, &run).await {
            Err(e) if e.code() == ErrorCode::Aborted => break Ended::Aborted,
            scores => scores?,
        };
        let word = sampler.pick(&mut scores)?;
        last = Instant::now();
        if words.is_empty() {
            first = last;
        }
        words.push(word);
        if settings.end.contains(word) {
            break Ended::Word(word);
        }
        if let Some(stop) = text.add(&stream.add(word)?) {
            break Ended::Stop(stop);
        }
    };
    let left = stream.rest()?;
    let text = text.finish(&left, &ended);
    Ok(Generated {
        words,
        text,
        ended,
        prompt: prompt.len(),
        first: (first - start).as_secs_f64(),
        rest: (last - first).as_secs_f64(),
    })
}

/// The text as it grows, and who is shown it.
struct Text<'a> {
    stops: Stops,
    text: String,
    show: &'a mut dyn FnMut(&str),
}

impl Text<'_> {
    /// The text that has ended it, if one has.
    fn add(&mut self, new: &str) -> Option<String> {
        let (passed, stop) = self.stops.add(new);
        let stop = stop.map(str::to_string);
        self.pass(&passed);
        stop
    }

    fn pass(&mut self, passed: &str) {
        if !passed.is_empty() {
            self.text.push_str(passed);
            (self.show)(passed);
        }
    }

    /// The whole text; what was held back belongs to it unless a stop has come.
    fn finish(mut self, left: &str, ended: &Ended) -> String {
        if !matches!(ended, Ended::Stop(_)) && self.add(left).is_none() {
            let stops = std::mem::replace(&mut self.stops, Stops::new(&[]));
            self.pass(&stops.rest());
        }
        self.text
    }
}
