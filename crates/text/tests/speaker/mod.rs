//! A small language model of `tests/references/language.zip`, and texts that it makes.

use std::sync::Arc;

use kilim::core::Limits;
use kilim::core::tensor::AlignedBytes;
use kilim::formats::{ModelFile, load_model};
use kilim::{BackendId, Fact, LoadOptions, RunOptions, Runtime, Session, Tensor};
use kilim_test_support::archive::Cases;
use kilim_text::{Decoder, Settings};

/// Positions for which the models have rotary angles, and for which they get some here.
const POSITIONS: [usize; 2] = [128, 2048];

/// A decoder's model, which gives the scores behind the last word alone.
pub fn session(model: &str) -> Session {
    session_with(model, |options| {
        options.last_only = [("logits".to_string(), 1)].into();
    })
}

/// A model in which further positions have the angles of the first ones.
pub fn session_with(model: &str, choose: impl FnOnce(&mut LoadOptions)) -> Session {
    let cases = Cases::of("language");
    let bytes = AlignedBytes::copy_of(cases.file(&format!("{model}/model.onnx"))).unwrap();
    let file = ModelFile::new(Arc::new(bytes), model);
    let mut graph = load_model(&file, &Limits::default()).unwrap();
    let [few, many] = POSITIONS;
    let tables = graph.values.iter_mut();
    for value in tables.filter(|value| value.name.ends_with("_cache")) {
        let table = value.constant.as_ref().unwrap();
        assert_eq!(table.shape()[0], few);
        let shape = [many, table.shape()[1]];
        let bytes = table.read().unwrap().repeat(many / few);
        let longer = Tensor::from_raw(table.dtype(), &shape, &bytes).unwrap();
        value.fact = Fact::of(&longer);
        value.constant = Some(longer);
    }
    let mut options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    choose(&mut options);
    pollster::block_on(Runtime::shared().session(graph, options)).unwrap()
}

pub fn settings(context: usize) -> Settings {
    Settings {
        context: Some(context),
        heads: Some(1),
        head_size: Some(16),
        ..Settings::default()
    }
}

pub fn best(scores: &[f64]) -> u32 {
    let mut best = 0;
    for (i, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = i;
        }
    }
    best as u32
}

/// A decoder with its session.
pub struct Speaker<'a> {
    pub session: &'a mut Session,
    pub decoder: Decoder,
}

impl<'a> Speaker<'a> {
    pub fn new(session: &'a mut Session, settings: &Settings) -> Speaker<'a> {
        let decoder = Decoder::new(session, settings).unwrap();
        Speaker { session, decoder }
    }

    pub fn run(&mut self, words: &[u32], options: &RunOptions) -> kilim::core::Result<Vec<f64>> {
        pollster::block_on(self.decoder.step(self.session, words, options))
    }

    pub fn length(&self) -> usize {
        self.decoder.length()
    }
}

pub fn step(decoder: &mut Speaker, words: &[u32]) -> u32 {
    best(&decoder.run(words, &RunOptions::default()).unwrap())
}

/// So many words behind a prompt, the best one always.
pub fn spoken(decoder: &mut Speaker, prompt: &[u32], count: usize) -> Vec<u32> {
    let mut words = vec![step(decoder, prompt)];
    while words.len() < count {
        let last = words[words.len() - 1];
        words.push(step(decoder, &[last]));
    }
    words
}

pub fn prompt(count: usize, seed: usize) -> Vec<u32> {
    (0..count)
        .map(|i| ((i * 37 + seed * 11) % 380 + 4) as u32)
        .collect()
}
