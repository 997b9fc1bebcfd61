//! A decoder of speech, whose words are chosen where its session is.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use js_sys::{Array, Function, Promise};
use kilim::Change;
use kilim_core::{Error, ErrorCode};
use kilim_speech::{Files, GgmlSpeech, LogMel, Part, Settings, Wanted, Writer};
use serde::Serialize;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert;
use crate::session::{WasmSession, json};

const NO_WRITER: &str = "the session has no speech decoder";

/// The writer of a session; `None` where it has none, and while a call has it.
pub type Place = Rc<Cell<Option<Writer>>>;

/// What was said in a window.
#[derive(Serialize)]
struct Window {
    parts: Vec<Part>,
    /// Samples that are done with.
    passed: usize,
    language: Option<String>,
}

/// What the files beside a model say, in the form that the page has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Said<'a> {
    /// Samples a second.
    rate: usize,
    /// Samples that are heard at once.
    window: usize,
    languages: Vec<&'a str>,
    tasks: Vec<&'a str>,
    times: Option<Times>,
    /// What `preprocessor_config.json` and `tokenizer.json` would hold, where a file of whisper.cpp says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    inside: Option<[&'a str; 2]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Times {
    first_word: u32,
    /// Seconds from one to the next.
    step: f64,
}

#[wasm_bindgen]
impl WasmSession {
    /// Makes a writer of the session, in place of the one that it has. Takes the texts of `config.json`, `generation_config.json` and
    /// `preprocessor_config.json`, or the beginning of a Whisper file of whisper.cpp, and gives `{rate, window, languages, tasks, times}` as
    /// JSON. Of such a file it gives `inside`, too: what `preprocessor_config.json` and `tokenizer.json` would hold.
    #[wasm_bindgen(js_name = openSpeech)]
    pub fn open_speech(
        &self,
        config: Option<String>,
        generation: Option<String>,
        preprocessor: Option<String>,
        ggml: Option<Vec<u8>>,
    ) -> Result<String, JsValue> {
        self.open_writer([config, generation, preprocessor], ggml)
    }

    /// What was said in a window of so many samples: a promise of `{parts, passed, language}` as JSON. The only one of `feeds` is what an encoder made of it.
    /// `wanted` is `{language?, translate?, times?, temperatures?}` as JSON. `stopped` is as of [`WasmSession::run`].
    #[wasm_bindgen(js_name = hearWindow)]
    pub fn hear_window(
        &self,
        feeds: &Array,
        samples: u32,
        wanted: &str,
        stopped: Option<Function>,
    ) -> Result<Promise, JsValue> {
        self.hear(feeds, samples, wanted, stopped)
    }

    /// How many of these samples of a longer recording are heard next.
    #[wasm_bindgen(js_name = nextWindow)]
    pub fn next_window(&self, samples: &[f32], times: bool) -> Result<u32, JsValue> {
        self.window_of(samples, times)
    }
}

// What is exported is in the core of the binary, where whatever is inlined would be, too.
impl WasmSession {
    #[inline(never)]
    fn open_writer(
        &self,
        files: [Option<String>; 3],
        ggml: Option<Vec<u8>>,
    ) -> Result<String, JsValue> {
        let [config, generation, preprocessor] = files.each_ref().map(Option::as_deref);
        let inside = ggml.map(|bytes| GgmlSpeech::of_beginning(&bytes));
        let inside = inside.transpose().map_err(|e| convert::error(&e))?;
        let settings = Settings::read(match &inside {
            Some(inside) => inside.files(),
            None => Files {
                config: config.unwrap_or("{}"),
                generation,
                preprocessor,
            },
        });
        let settings = settings.map_err(|e| convert::error(&e))?;
        let times = settings.times().map(|times| Times {
            first_word: times.first,
            step: times.step,
        });
        let said = json(&Said {
            rate: settings.rate,
            window: settings.window,
            languages: settings.languages.names().collect(),
            tasks: settings.tasks.names().collect(),
            times,
            inside: inside
                .as_ref()
                .map(|inside| [&*inside.preprocessor, &*inside.tokenizer]),
        })?;
        let writer = self.look(|session| Writer::new(session, settings))?;
        let writer = writer.map_err(|e| convert::error(&e))?;
        self.speech.set(Some(writer));
        Ok(said)
    }

    #[inline(never)]
    fn window_of(&self, samples: &[f32], times: bool) -> Result<u32, JsValue> {
        let writer = self.speech.take().ok_or_else(|| state(NO_WRITER))?;
        let window = writer.settings().next_window(samples, times);
        self.speech.set(Some(writer));
        Ok(window as u32)
    }

    #[inline(never)]
    fn hear(
        &self,
        feeds: &Array,
        samples: u32,
        wanted: &str,
        stopped: Option<Function>,
    ) -> Result<Promise, JsValue> {
        let wanted = wanted_of(wanted).map_err(|e| convert::error(&e))?;
        let source = self.given(feeds)?.into_iter().next();
        let (_, source) = source.ok_or_else(|| state("a window without sound"))?;
        let options = self.run_options(None, stopped);
        let place = self.speech.clone();
        self.promise(async move |session| {
            let writer = place.take();
            let mut writer = writer.ok_or_else(|| state(NO_WRITER))?;
            let samples = samples as usize;
            let heard = match writer.attend(source, samples) {
                Ok(()) => writer.words(session, &wanted, &options).await,
                Err(error) => Err(error),
            };
            let window = heard.map(|heard| {
                let language = heard.language.clone();
                let (parts, passed) = writer.settings().parts(heard, wanted.times, samples);
                Window {
                    parts,
                    passed,
                    language,
                }
            });
            place.set(Some(writer));
            Ok(json(&window.map_err(|e| convert::error(&e))?)?.into())
        })
    }
}

/// Makes an encoder take samples, as `preprocessor_config.json` says of its spectrum.
#[inline(never)]
pub fn listening(settings: &str) -> kilim_core::Result<Change> {
    let mel = LogMel::read(settings)?;
    Ok(Arc::new(move |graph| mel.before(graph, "input_features")))
}

fn wanted_of(text: &str) -> kilim_core::Result<Wanted> {
    serde_json::from_str(text).map_err(|e| {
        let message = format!("what is wanted of a window cannot be understood: {e}");
        Error::new(ErrorCode::InvalidValue, message)
    })
}

fn state(message: &str) -> JsValue {
    convert::error(&Error::new(ErrorCode::State, message))
}
