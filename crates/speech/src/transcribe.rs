//! Sound of any length, window by window.

use std::sync::Arc;

use kilim_core::{AbortSignal, Result, RunOptions};
use kilim_text::Tokenizer;

use crate::listener::Listener;
use crate::writer::Wanted;

/// What is wanted of a recording.
#[derive(Clone, Default)]
pub struct Options {
    pub wanted: Wanted,
    /// Ends the work.
    pub abort: Option<Arc<dyn AbortSignal>>,
}

/// A part of what was said.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Seconds from the begin of the recording.
    pub start: f64,
    pub end: f64,
    pub text: String,
    pub words: Vec<u32>,
    /// The mean of the natural logarithms of the probabilities of all words of its window: 0 where the model is sure.
    pub certainty: f64,
    /// Whether the model came to no end of the text, so that more may have been said.
    pub cut: bool,
}

/// What was said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub segments: Vec<Segment>,
    /// The code of the language, where the model knows several.
    pub language: Option<String>,
}

impl Transcript {
    /// All that was said.
    pub fn text(&self) -> String {
        let texts = self.segments.iter().map(|segment| segment.text.trim());
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        texts.join(" ")
    }
}

/// Makes text of a recording: samples of one channel, from −1 to 1, so many a second as the model takes. `show` is told of parts as they
/// come, with the seconds of the recording that are done.
///
/// A recording longer than a window is cut where the model says that a sentence ends; one that does not say, in the quietest place of the
/// last ten seconds of a window. The language of the first window is that of all.
///
/// # Errors
/// Those of [`Listener::hear`] and [`Listener::words`], and of the tokenizer; `Aborted` where that was asked for.
pub async fn transcribe(
    listener: &mut Listener,
    tokenizer: &Tokenizer,
    samples: &[f32],
    options: &Options,
    show: &mut dyn FnMut(&Segment, f64),
) -> Result<Transcript> {
    let run = RunOptions {
        abort: options.abort.clone(),
        ..RunOptions::default()
    };
    let rate = listener.settings().rate as f64;
    let mut wanted = options.wanted.clone();
    // Without times nobody knows where a window may end.
    wanted.times |= samples.len() > listener.window() && listener.settings().has_times();
    let mut transcript = Transcript::default();
    let mut at = 0;
    while at < samples.len() {
        let window = listener
            .settings()
            .next_window(&samples[at..], wanted.times);
        listener.hear(&samples[at..at + window], &run).await?;
        let heard = listener.words(&wanted, &run).await?;
        wanted.language.clone_from(&heard.language);
        transcript.language.clone_from(&heard.language);
        let (parts, passed) = listener.settings().parts(heard, wanted.times, window);
        let start = at as f64 / rate;
        at += passed;
        for part in parts {
            let segment = Segment {
                start: start + part.start,
                end: start + part.end,
                text: text_of(tokenizer, &part.words)?,
                words: part.words,
                certainty: part.certainty,
                cut: part.cut,
            };
            show(&segment, at as f64 / rate);
            transcript.segments.push(segment);
        }
    }
    Ok(transcript)
}

fn text_of(tokenizer: &Tokenizer, words: &[u32]) -> Result<String> {
    let mut stream = tokenizer.stream();
    let mut text = String::new();
    for &word in words {
        text.push_str(&stream.add(word)?);
    }
    text.push_str(&stream.rest()?);
    Ok(text)
}
