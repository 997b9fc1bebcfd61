//! What models of `tests/references/speech.zip` hear, beside what transformers heard with them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kilim::core::Limits;
use kilim::core::tensor::AlignedBytes;
use kilim::formats::ggml::{DECODED, ENCODED};
use kilim::formats::{ModelFile, load_model};
use kilim::{
    BackendId, DType, ErrorCode, Fact, Graph, Keep, LoadOptions, RunOptions, Runtime, Session,
};
use kilim_speech::{
    Files, GgmlSpeech, Listener, LogMel, Options, SAMPLES, Segment, Settings, Wanted, transcribe,
};
use kilim_test_support::archive::Cases;
use kilim_test_support::tones::{ENGLISH, Phrase, recording, sound};
use kilim_text::Tokenizer;
use pollster::block_on;
use serde::Deserialize;

#[derive(Deserialize)]
struct Index {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    heard: Vec<Heard>,
    /// Every seventh band and every ninth frame of the first sound.
    spectrum: Option<Vec<Vec<f64>>>,
}

#[derive(Deserialize)]
struct Heard {
    #[serde(flatten)]
    sound: Sound,
    language: Option<String>,
    #[serde(default)]
    translate: bool,
    times: bool,
    words: Vec<u32>,
}

#[derive(Deserialize)]
struct Sound {
    phrases: Vec<Phrase>,
    voice: f64,
    seconds: f64,
}

impl Sound {
    fn samples(&self) -> Vec<f32> {
        sound(&self.phrases, self.voice, self.seconds)
    }
}

struct Material {
    files: Cases,
    index: Index,
}

impl Material {
    fn new() -> Material {
        let files = Cases::of("speech");
        let index = serde_json::from_slice(&files.index).unwrap();
        Material { files, index }
    }

    fn graph(&self, model: &str, file: &str) -> Graph {
        let bytes = self.files.file(&format!("{model}/{file}"));
        let bytes = AlignedBytes::copy_of(bytes).unwrap();
        let file = ModelFile::new(Arc::new(bytes), file);
        load_model(&file, &Limits::default()).unwrap()
    }

    fn settings(&self, model: &str) -> Settings {
        self.settings_with(model, str::to_string)
    }

    /// The settings with another `generation_config.json`.
    fn settings_with(&self, model: &str, change: impl Fn(&str) -> String) -> Settings {
        let text = |file: &str| {
            let bytes = self.files.file(&format!("{model}/{file}"));
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let generation = change(&text("generation_config.json"));
        let preprocessor = text("preprocessor_config.json");
        Settings::read(Files {
            config: &text("config.json"),
            generation: Some(&generation),
            preprocessor: Some(&preprocessor),
        })
        .unwrap()
    }

    fn listener(&self, model: &str, backends: &[&str]) -> Listener {
        self.listener_with(model, backends, self.settings(model))
    }

    fn listener_with(&self, model: &str, backends: &[&str], settings: Settings) -> Listener {
        let encoder = self.graph(model, "encoder_model.onnx");
        let encoder = settings.listening(encoder).unwrap();
        let decoder = self.graph(model, "decoder_model_merged.onnx");
        let [encoder, decoder] = [encoder, decoder].map(|graph| session(graph, backends));
        Listener::new(encoder, decoder, settings).unwrap()
    }
}

fn session(graph: Graph, backends: &[&str]) -> Session {
    session_with(graph, backends, None)
}

/// A session with these outputs alone.
fn session_with(graph: Graph, backends: &[&str], outputs: Option<Keep>) -> Session {
    let mut options = LoadOptions {
        backends: backends.iter().map(|&id| BackendId::from(id)).collect(),
        ..LoadOptions::default()
    };
    options.outputs = outputs;
    block_on(Runtime::shared().session(graph, options)).unwrap()
}

fn wanted(heard: &Heard) -> Wanted {
    Wanted {
        language: heard.language.clone(),
        translate: heard.translate,
        times: heard.times,
        ..Wanted::default()
    }
}

#[test]
fn models_hear_what_transformers_heard() {
    let material = Material::new();
    for case in &material.index.cases {
        let mut listener = material.listener(&case.name, &["cpu"]);
        for (i, heard) in case.heard.iter().enumerate() {
            let samples = heard.sound.samples();
            let run = RunOptions::default();
            block_on(listener.hear(&samples, &run)).unwrap();
            let made = block_on(listener.words(&wanted(heard), &run)).unwrap();
            assert_eq!(made.words, heard.words, "{}, {i}", case.name);
            assert!(!made.cut && made.certainty > -0.5, "{made:?}");
        }
        assert!(case.heard.iter().any(|heard| heard.words.len() > 4));
    }
}

#[test]
fn a_spectrum_is_that_of_transformers() {
    let material = Material::new();
    for case in &material.index.cases {
        let Some(spectrum) = &case.spectrum else {
            continue;
        };
        let mel = LogMel {
            chunk_length: 2,
            ..LogMel::default()
        };
        let mut graph = Graph::new("spectrum");
        let features = Fact::fixed(DType::F32, &[1, mel.feature_size, 200]);
        let features = graph.add_input("input_features", features);
        graph.outputs.push(features);
        let mut session = session(mel.before(graph, "input_features").unwrap(), &["cpu"]);
        let mut samples = case.heard[0].sound.samples();
        samples.resize(mel.samples(), 0.0);
        let samples = kilim::Tensor::from_slice(&[1, samples.len()], &samples).unwrap();
        let outputs = block_on(session.run(&[(SAMPLES, samples)], &RunOptions::default()));
        let (_, made) = &outputs.unwrap()[0];
        let made: &[f32] = made.as_slice().unwrap();
        for (band, row) in spectrum.iter().enumerate() {
            for (frame, expected) in row.iter().enumerate() {
                let number = f64::from(made[band * 7 * 200 + frame * 9]);
                let difference = (number - expected).abs();
                assert!(difference < 2e-4, "{band}, {frame}: {number}, {expected}");
            }
        }
    }
}

/// A tokenizer of the archive, which is read from a file.
fn tokenizer(material: &Material, model: &str) -> Tokenizer {
    let file = format!("kilim-{}-{model}-tokenizer.json", std::process::id());
    let file = std::env::temp_dir().join(file);
    let bytes = material.files.file(&format!("{model}/tokenizer.json"));
    std::fs::write(&file, bytes).unwrap();
    let tokenizer = Tokenizer::open(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    tokenizer
}

#[test]
fn a_recording_of_several_windows_is_written_whole() {
    let material = Material::new();
    let tokenizer = tokenizer(&material, "whisper");
    let mut listener = material.listener("whisper", &["cpu"]);
    let (phrases, written) = recording();
    let samples = sound(&phrases, ENGLISH, 6.3);
    for time in 0..2 {
        let mut told = Vec::new();
        let mut show = |segment: &Segment, seconds: f64| told.push((segment.clone(), seconds));
        let options = Options::default();
        let made = transcribe(&mut listener, &tokenizer, &samples, &options, &mut show);
        let made = block_on(made).unwrap();
        assert_eq!(made.text(), written, "time {time}");
        assert_eq!(made.language.as_deref(), Some("en"));
        assert_eq!(made.segments.len(), phrases.len());
        for (segment, (start, end, _)) in made.segments.iter().zip(&phrases) {
            assert!((segment.start - start).abs() < 0.07, "{segment:?}");
            assert!((segment.end - end).abs() < 0.07, "{segment:?}");
        }
        assert_eq!(told.len(), made.segments.len());
        assert!(told.is_sorted_by(|a, b| a.1 <= b.1));
        assert!(told[told.len() - 1].1 > 5.6);
    }
}

#[test]
fn an_encoder_of_a_fixed_length_hears_silence_behind_the_sound() {
    let material = Material::new();
    let mut encoder = material.graph("moonshine", "encoder_model.onnx");
    let length = 32_000;
    let sizes = [("encoder_sequence_length".to_string(), length)];
    encoder.fix_dims(&sizes.into()).unwrap();
    let decoder = material.graph("moonshine", "decoder_model_merged.onnx");
    let [encoder, decoder] = [encoder, decoder].map(|graph| session(graph, &["cpu"]));
    let settings = material.settings("moonshine");
    let mut listener = Listener::new(encoder, decoder, settings).unwrap();
    let run = RunOptions::default();
    let case = material.index.cases.iter().find(|c| c.name == "moonshine");
    let heard = &case.unwrap().heard[0];
    block_on(listener.hear(&heard.sound.samples(), &run)).unwrap();
    let made = block_on(listener.words(&Wanted::default(), &run)).unwrap();
    assert_eq!(made.words, heard.words);
    let error = block_on(listener.hear(&vec![0.1; length + 1], &run)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unsupported);
}

#[test]
fn an_abort_ends_a_transcript() {
    let material = Material::new();
    let tokenizer = tokenizer(&material, "moonshine");
    let mut listener = material.listener("moonshine", &["cpu"]);
    let options = Options {
        abort: Some(Arc::new(AtomicBool::new(true))),
        ..Options::default()
    };
    let samples = sound(&recording().0, ENGLISH, 6.3);
    let mut show = |_: &Segment, _| {};
    let made = transcribe(&mut listener, &tokenizer, &samples, &options, &mut show);
    assert_eq!(block_on(made).unwrap_err().code(), ErrorCode::Aborted);
}

#[test]
fn what_a_model_does_not_know_is_an_error() {
    let material = Material::new();
    let run = RunOptions::default();
    let mut listener = material.listener("whisper", &["cpu"]);
    let none = block_on(listener.words(&Wanted::default(), &run)).unwrap_err();
    assert_eq!(none.code(), ErrorCode::State);
    block_on(listener.hear(&vec![0.1; 3000], &run)).unwrap();
    let latin = Wanted {
        language: Some("la".to_string()),
        ..Wanted::default()
    };
    let error = block_on(listener.words(&latin, &run)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    assert!(error.to_string().contains("`la`"), "{error}");
    for samples in [0, listener.window() + 1] {
        let error = block_on(listener.hear(&vec![0.0; samples], &run)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue);
    }
    let several = "\"is_multilingual\": true";
    let settings = material.settings_with("whisper", |text| {
        assert!(text.contains(several));
        text.replace(several, "\"is_multilingual\": false")
    });
    let mut english = material.listener_with("whisper", &["cpu"], settings);
    block_on(english.hear(&vec![0.1; 3000], &run)).unwrap();
    let error = block_on(english.words(&latin, &run)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    let mut moonshine = material.listener("moonshine", &["cpu"]);
    block_on(moonshine.hear(&vec![0.1; 3000], &run)).unwrap();
    let times = Wanted {
        times: true,
        ..Wanted::default()
    };
    let error = block_on(moonshine.words(&times, &run)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
}

/// What a Whisper with these settings makes of the first sound, drawing words at these temperatures.
fn heard_at(material: &Material, settings: Settings, temperatures: &[f64]) -> kilim_speech::Heard {
    let mut listener = material.listener_with("whisper", &["cpu"], settings);
    let run = RunOptions::default();
    let case = material.index.cases.iter().find(|c| c.name == "whisper");
    let samples = case.unwrap().heard[0].sound.samples();
    block_on(listener.hear(&samples, &run)).unwrap();
    let wanted = Wanted {
        temperatures: Some(temperatures.to_vec()),
        ..Wanted::default()
    };
    block_on(listener.words(&wanted, &run)).unwrap()
}

#[test]
fn a_text_that_is_doubted_is_made_again() {
    let material = Material::new();
    let heard = |temperatures: &[f64]| {
        let settings = material.settings("whisper");
        heard_at(&material, settings, temperatures)
    };
    let likeliest = heard(&[0.0]);
    assert!(likeliest.certainty > -0.5, "{likeliest:?}");
    let wild = heard(&[50.0]);
    assert!(wild.certainty < -1.0, "{wild:?}");
    assert_ne!(wild.words, likeliest.words);
    assert_eq!(wild, heard(&[50.0]), "words are drawn by a seed");
    // The language was found out before: the first words go through the decoder together.
    let again = heard(&[50.0, 0.0, 70.0]);
    assert_eq!(
        (again.words, again.language),
        (likeliest.words, likeliest.language)
    );
}

#[test]
fn a_text_without_an_end_is_made_again_and_says_so() {
    let material = Material::new();
    let endless = || {
        material.settings_with("whisper", |text| {
            let mut said: serde_json::Value = serde_json::from_str(text).unwrap();
            let end = said["eos_token_id"].clone();
            said["suppress_tokens"].as_array_mut().unwrap().push(end);
            said.to_string()
        })
    };
    let greedy = heard_at(&material, endless(), &[0.0]);
    assert!(greedy.cut, "{greedy:?}");
    let again = heard_at(&material, endless(), &[0.0, 2.0]);
    assert!(again.cut && again.words != greedy.words, "{again:?}");
    let none = Wanted {
        temperatures: Some(Vec::new()),
        ..Wanted::default()
    };
    let mut listener = material.listener("whisper", &["cpu"]);
    let run = RunOptions::default();
    block_on(listener.hear(&vec![0.1; 3000], &run)).unwrap();
    let error = block_on(listener.words(&none, &run)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
}

/// The model begins with the word for English where it is sure of that; here this is the one that says that nobody speaks.
#[test]
fn a_doubted_text_of_silence_is_none() {
    let material = Material::new();
    let silent = || {
        material.settings_with("whisper", |text| {
            let mut said: serde_json::Value = serde_json::from_str(text).unwrap();
            said["is_multilingual"] = false.into();
            said["no_timestamps_token_id"] = 303.into();
            said.as_object_mut().unwrap().remove("task_to_id");
            said.to_string()
        })
    };
    let doubted = heard_at(&material, silent(), &[50.0, 60.0]);
    assert_eq!((doubted.words, doubted.cut), (vec![], false));
    let settings = material.settings("whisper");
    assert!(!heard_at(&material, settings, &[50.0]).words.is_empty());
}

/// A model of `tests/references/whisper.zip`, whose file has both halves, with a change of what it says of texts.
fn whole(name: &str, change: impl Fn(&mut serde_json::Value)) -> Listener {
    let cases = Cases::of("whisper");
    let bytes = cases.file(&format!("{name}/ggml-model.bin"));
    let mut inside = GgmlSpeech::of_beginning(bytes).unwrap();
    let mut generation = serde_json::from_str(&inside.generation).unwrap();
    change(&mut generation);
    inside.generation = generation.to_string();
    let settings = Settings::read(inside.files()).unwrap();
    let bytes = AlignedBytes::copy_of(bytes).unwrap();
    let file = ModelFile::new(Arc::new(bytes), "ggml-model.bin");
    let decoder = load_model(&file, &Limits::default()).unwrap();
    let encoder = settings.listening(decoder.clone()).unwrap();
    let encoder = session_with(encoder, &["cpu"], Some(Keep::new(ENCODED)));
    let decoder = session_with(decoder, &["cpu"], Some(Keep::new(DECODED)));
    Listener::new(encoder, decoder, settings).unwrap()
}

/// The weights of the files are those of the small Whisper, whose times have other numbers there (`tools/references/ggml_whisper.py`).
#[test]
fn files_of_whisper_cpp_hear_what_transformers_heard() {
    let material = Material::new();
    let moved = |word: &u32| word + if *word >= 308 { 7 } else { 0 };
    let case = material.index.cases.iter().find(|c| c.name == "whisper");
    let run = RunOptions::default();
    for (name, tolerance) in [("floats", 1e-3), ("packed", 0.05)] {
        let mut exported = material.listener("whisper", &["cpu"]);
        // The small model begins texts with a space, which OpenAI's program forbids.
        let mut listener = whole(name, |said| {
            said["begin_suppress_tokens"] = serde_json::json!([])
        });
        assert_eq!(listener.settings().languages.iter().count(), 7);
        for (i, heard) in case.unwrap().heard.iter().enumerate() {
            let samples = heard.sound.samples();
            let expected: Vec<u32> = heard.words.iter().map(moved).collect();
            let listen = |listener: &mut Listener| {
                block_on(listener.hear(&samples, &run)).unwrap();
                block_on(listener.words(&wanted(heard), &run)).unwrap()
            };
            let (made, before) = (listen(&mut listener), listen(&mut exported));
            assert_eq!(made.words, expected, "{name}, {i}");
            assert_eq!(made.language, before.language, "{name}, {i}");
            let difference = (made.certainty - before.certainty).abs();
            assert!(difference < tolerance, "{name}, {i}: {difference}");
        }
    }
}

#[test]
fn a_file_of_whisper_cpp_writes_a_recording() {
    let cases = Cases::of("whisper");
    let bytes = cases.file("packed/ggml-model.bin");
    let path = std::env::temp_dir().join(format!("kilim-{}-ggml.bin", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let folder = kilim_speech::Folder::open(&path, None).unwrap();
    let tokenizer = folder.tokenizer().unwrap();
    assert_eq!(folder.outputs().map(|of| of.is_some()), [true; 2]);
    std::fs::write(&path, &bytes[..1000]).unwrap();
    let error = kilim_speech::Folder::open(&path, None).err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidModel);
    std::fs::remove_file(&path).unwrap();
    let mut listener = whole("packed", |_| {});
    let (phrases, written) = recording();
    let samples = sound(&phrases, ENGLISH, 6.3);
    let mut show = |_: &Segment, _| {};
    let options = Options::default();
    let made = transcribe(&mut listener, &tokenizer, &samples, &options, &mut show);
    let made = block_on(made).unwrap();
    assert_eq!(made.text(), written);
    assert_eq!(made.segments.len(), phrases.len());
}
