//! Files that bring their tokenizer (`tests/references/ggml.zip`): words are those of the package that trained it, and the text goes on
//! as transformers goes on.

use std::fs;
use std::path::PathBuf;

use kilim::{BackendId, ErrorCode, LoadOptions};
use kilim_test_support::archive::Cases;
use kilim_text::{Decoder, Ended, Folder, GgufText, Message, Options, Sampling, generate};
use serde_json::Value;

const KINDS: [&str; 2] = ["words-joined", "words-pieces"];

/// A model in a file of the test's own.
fn file(test: &str, kind: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{test}-{kind}.gguf"));
    let bytes = Cases::of("ggml")
        .file(&format!("{kind}/model.gguf"))
        .to_vec();
    fs::write(&file, bytes).expect("a file");
    file
}

fn told(kind: &str) -> Value {
    let cases = Cases::of("ggml");
    serde_json::from_slice(cases.file(&format!("{kind}/words.json"))).expect("what is told")
}

fn numbers(words: &Value) -> Vec<u32> {
    let words = words.as_array().expect("words").iter();
    words
        .map(|n| n.as_u64().expect("a number") as u32)
        .collect()
}

#[test]
fn words_are_those_of_the_package_that_trained_the_tokenizer() {
    for kind in KINDS {
        let file = file("encode", kind);
        let folder = Folder::open(&file, None).expect(kind);
        let tokenizer = folder.tokenizer().expect(kind);
        for case in told(kind)["texts"].as_array().expect("texts") {
            let text = case["text"].as_str().expect("a text");
            let words = tokenizer.encode(text, true).expect("words");
            assert_eq!(words, numbers(&case["words"]), "{kind}: {text:?}");
            let mut stream = tokenizer.stream();
            let mut back = String::new();
            for word in words {
                back += &stream.add(word).expect("a piece");
            }
            back += &stream.rest().expect("the rest");
            assert_eq!(back, text, "{kind}");
        }
        fs::remove_file(file).expect("the file");
    }
}

#[test]
fn a_text_goes_on_as_in_transformers() {
    for kind in KINDS {
        let file = file("goes-on", kind);
        let folder = Folder::open(&file, None).expect(kind);
        let tokenizer = folder.tokenizer().expect(kind);
        let told = told(kind);
        let options = LoadOptions {
            backends: vec![BackendId::from("cpu")],
            ..LoadOptions::default()
        };
        let load = kilim::load(folder.model.as_path(), options);
        let mut session = pollster::block_on(load).expect("the model");
        let mut decoder = Decoder::new(&session, &folder.settings).expect("a decoder");
        let prompt = told["texts"][0]["text"].as_str().expect("a text");
        let prompt = tokenizer.encode(prompt, true).expect("words");
        let options = Options {
            sampling: Sampling::default(),
            most: 12,
            stops: Vec::new(),
            abort: None,
        };
        let settings = &folder.settings;
        let mut show = |_: &str| {};
        let made = generate(
            &mut session,
            &mut decoder,
            &tokenizer,
            settings,
            &prompt,
            &options,
            &mut show,
        );
        let made = pollster::block_on(made).expect("a text");
        let words = numbers(&told["goes_on"]);
        let ends = words.iter().position(|&word| settings.end.contains(word));
        let words = &words[..ends.map_or(words.len(), |at| at + 1)];
        assert_eq!(made.words, words, "{kind}");
        let says = told["says"].as_str().expect("a text").trim_start();
        // Packages differ in how many marks stand for bytes that are no characters.
        if made.ended == Ended::Most && !says.contains(char::REPLACEMENT_CHARACTER) {
            assert_eq!(made.text.trim_start(), says, "{kind}");
        }
        fs::remove_file(file).expect("the file");
    }
}

#[test]
fn a_file_says_what_ends_a_text_and_how_prompts_are_made() {
    let file = file("says", "words-joined");
    let folder = Folder::open(&file, None).expect("a folder");
    assert_eq!(folder.settings.end.list(), [1, 2]);
    assert_eq!(folder.settings.context, Some(64));
    let said = Message {
        role: "user".to_string(),
        content: "hi".to_string(),
    };
    let prompt = folder
        .chat()
        .and_then(|chat| chat.prompt(&[said]))
        .expect("a prompt");
    assert_eq!(prompt, "<|begin|>[user] hi>");
    let words = folder
        .tokenizer()
        .expect("a tokenizer")
        .encode(&prompt, false)
        .expect("words");
    assert_eq!(words.first(), Some(&0));
    fs::remove_file(file).expect("the file");
}

#[test]
fn tokenizers_that_are_not_known_are_refused() {
    let bytes = Cases::of("ggml").file("words-joined/model.gguf").to_vec();
    let with = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes());
        let at = at.expect("the text of a key");
        let mut bytes = bytes.clone();
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        let begin = |to: &mut [u8]| {
            to.copy_from_slice(&bytes[..to.len()]);
            Ok(())
        };
        GgufText::read(bytes.len(), &begin).expect_err("refused")
    };
    let error = with("llama-bpe", "llama-xyz");
    assert_eq!(error.code(), ErrorCode::Unsupported);
    assert!(error.message().contains("llama-xyz"), "{error}");
    let error = with("gpt2", "bert");
    assert_eq!(error.code(), ErrorCode::Unsupported);
    let error = with("tokenizer.ggml.tokens", "tokenizer.ggml.others");
    assert_eq!(error.code(), ErrorCode::InvalidModel);
}
