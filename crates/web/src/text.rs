//! The words of a language model, chosen where its session is.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{Function, Promise};
use kilim_core::{Error, ErrorCode};
use kilim_text::{Decoder, Files, GgufText, Sampler, Sampling, Settings};
use serde::Serialize;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert;
use crate::session::{WasmSession, json};

/// The decoder of a session; `None` where it has none, and while a call has it.
pub type Place = Rc<Cell<Option<Text>>>;

/// A decoder in the middle of a text.
pub struct Text {
    decoder: Decoder,
    /// `None` before the first text.
    sampler: Option<Sampler>,
    /// Words that the model has not been run on: what is left of a prompt, or the word that was chosen last.
    open: Vec<u32>,
}

/// What the files beside a model say, in the form that the page has.
#[derive(Serialize)]
struct Said<'a> {
    end: &'a [u32],
    context: Option<usize>,
    sampling: &'a Sampling,
    /// What `tokenizer.json` and `tokenizer_config.json` would hold, where a GGUF file says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<[&'a str; 2]>,
}

#[wasm_bindgen]
impl WasmSession {
    /// Makes a decoder of the session, in place of the one that it has. Takes the texts of `genai_config.json`, `config.json` and
    /// `generation_config.json`, or the beginning of a GGUF file, and gives `{end, context, sampling}` as JSON. Of a GGUF file it gives
    /// `words`, too: what `tokenizer.json` and `tokenizer_config.json` would hold.
    #[wasm_bindgen(js_name = openDecoder)]
    pub fn open_decoder(
        &self,
        genai: Option<String>,
        config: Option<String>,
        generation: Option<String>,
        gguf: Option<Vec<u8>>,
    ) -> Result<String, JsValue> {
        self.open([genai, config, generation], gguf)
    }

    /// Begins a text with these words, chosen on by `sampling`, which is JSON: a promise of how many of them the caches know already.
    #[wasm_bindgen(js_name = startText)]
    pub fn start_text(&self, words: Vec<u32>, sampling: &str) -> Result<Promise, JsValue> {
        self.start(words, sampling)
    }

    /// Runs the model on what it does not know yet of the text, and chooses a word: a promise of its number. `stopped` is as of
    /// [`WasmSession::run`]. After an error the same call may be made again.
    #[wasm_bindgen(js_name = nextWord)]
    pub fn next_word(&self, stopped: Option<Function>) -> Result<Promise, JsValue> {
        self.next(stopped)
    }
}

// What is exported is in the core of the binary, where whatever is inlined would be, too.
impl WasmSession {
    #[inline(never)]
    fn open(&self, files: [Option<String>; 3], gguf: Option<Vec<u8>>) -> Result<String, JsValue> {
        let [genai, config, generation] = files.each_ref().map(Option::as_deref);
        let inside = gguf.map(|bytes| GgufText::of_beginning(&bytes)).transpose();
        let inside = inside.map_err(|e| convert::error(&e))?;
        let settings = match &inside {
            Some(inside) => Ok(inside.settings.clone()),
            None => Settings::read(Files {
                genai,
                config,
                generation,
            }),
        };
        let settings = settings.map_err(|e| convert::error(&e))?;
        let decoder = self.look(|session| Decoder::new(session, &settings))?;
        self.text.set(Some(Text {
            decoder: decoder.map_err(|e| convert::error(&e))?,
            sampler: None,
            open: Vec::new(),
        }));
        json(&Said {
            end: settings.end.list(),
            context: settings.context,
            sampling: &settings.sampling,
            words: inside
                .as_ref()
                .map(|inside| [&*inside.tokenizer, &*inside.templates]),
        })
    }

    #[inline(never)]
    fn start(&self, words: Vec<u32>, sampling: &str) -> Result<Promise, JsValue> {
        let sampling = sampling_of(sampling).map_err(|e| convert::error(&e))?;
        let mut sampler = Sampler::new(sampling).map_err(|e| convert::error(&e))?;
        sampler.prompt(&words);
        self.speaking(async move |text, _| {
            let kept = text.decoder.resume(&words).await;
            let kept = kept.map_err(|e| convert::error(&e))?;
            text.open = words[kept..].to_vec();
            text.sampler = Some(sampler);
            Ok((kept as u32).into())
        })
    }

    #[inline(never)]
    fn next(&self, stopped: Option<Function>) -> Result<Promise, JsValue> {
        let options = self.run_options(None, stopped);
        self.speaking(async move |text, session| {
            let sampler = text.sampler.as_mut();
            let sampler = sampler.ok_or_else(|| state("no text was begun"))?;
            let scores = text.decoder.step(session, &text.open, &options).await;
            let mut scores = scores.map_err(|e| convert::error(&e))?;
            text.open.clear();
            let word = sampler.pick(&mut scores);
            let word = word.map_err(|e| convert::error(&e))?;
            text.open.push(word);
            Ok(word.into())
        })
    }

    /// A promise of what `call` makes of the decoder and its session.
    fn speaking(
        &self,
        call: impl AsyncFnOnce(&mut Text, &mut kilim::Session) -> Result<JsValue, JsValue> + 'static,
    ) -> Result<Promise, JsValue> {
        let place = self.text.clone();
        self.promise(async move |session| {
            let mut text = place
                .take()
                .ok_or_else(|| state("the session has no decoder"))?;
            let result = call(&mut text, session).await;
            place.set(Some(text));
            result
        })
    }
}

fn sampling_of(text: &str) -> kilim_core::Result<Sampling> {
    serde_json::from_str(text).map_err(|e| {
        let message = format!("the sampling cannot be understood: {e}");
        Error::new(ErrorCode::InvalidValue, message)
    })
}

fn state(message: &str) -> JsValue {
    convert::error(&Error::new(ErrorCode::State, message))
}
