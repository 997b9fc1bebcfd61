//! `kilim generate`, on a decoder of two layers that the builder of onnxruntime-genai wrote.

use std::fs;
use std::path::PathBuf;

use kilim_test_support::archive::Cases;
use serde_json::{Value, json};

use crate::support::{fails, folder, kilim, ok, text};

/// The words of the model are `w0` to `w383`.
fn tokenizer() -> Value {
    let words = (0..384).map(|i| (format!("w{i}"), Value::from(i)));
    let vocabulary: serde_json::Map<String, Value> = words.collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "w0"},
    })
}

/// A folder with that model under `file`, and its tokenizer.
fn decoder(name: &str, file: &str) -> PathBuf {
    let folder = folder(name);
    let model = folder.join(file);
    fs::create_dir_all(model.parent().expect("a folder")).expect("the folder can be made");
    let cases = Cases::of("language");
    fs::write(model, cases.file("phi3-int4/model.onnx")).expect("the model can be written");
    write(&folder, "tokenizer.json", &tokenizer());
    folder
}

fn write(folder: &std::path::Path, name: &str, value: &Value) {
    fs::write(folder.join(name), value.to_string()).expect("the file can be written");
}

/// A folder with a small decoder, laid out as onnxruntime-genai does.
fn genai(name: &str) -> PathBuf {
    let folder = decoder(name, "model.onnx");
    let config = json!({
        "model": {
            "context_length": 128, "eos_token_id": 117,
            "decoder": {
                "filename": "model.onnx", "head_size": 16, "num_key_value_heads": 1,
                "inputs": {"input_ids": "input_ids", "past_key_names": "past_key_values.%d.key"},
                "outputs": {"logits": "logits", "present_key_names": "present.%d.key"},
            },
        },
        "search": {"do_sample": false, "top_k": 50},
    });
    write(&folder, "genai_config.json", &config);
    folder
}

/// A folder with a small decoder, laid out as Hugging Face does.
fn hugging_face(name: &str) -> PathBuf {
    let folder = decoder(name, "onnx/model.onnx");
    let config = json!({
        "eos_token_id": [2, 165], "max_position_embeddings": 128,
        "hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1,
    });
    write(&folder, "config.json", &config);
    let chat = "{% for m in messages %}w9 {{ m.content }} {% endfor %}w8";
    write(
        &folder,
        "tokenizer_config.json",
        &json!({"chat_template": chat}),
    );
    folder
}

fn generated(folder: &std::path::Path, more: &[&str]) -> Value {
    let path = folder.display().to_string();
    let mut args = vec!["generate", &path, "--backends", "cpu", "--json"];
    args.extend(more);
    serde_json::from_str(&ok(&args)).expect("JSON")
}

/// What onnxruntime's session gives for the words 4 to 8, the best word always. 117 ends a text.
const GREEDY: [u32; 10] = [378, 182, 172, 178, 182, 172, 178, 182, 165, 117];
const PROMPT: [&str; 2] = ["--prompt", "w4 w5 w6 w7 w8"];

#[test]
fn a_folder_of_genai_gives_onnxruntimes_words() {
    let folder = genai("genai");
    let made = generated(&folder, &PROMPT);
    assert_eq!(made["words"], json!(GREEDY));
    assert_eq!(made["ended"], "end");
    assert_eq!(made["prompt_words"], 5);
    let few = generated(&folder, &[&PROMPT[..], &["--max-words", "3"]].concat());
    assert_eq!(few["words"], json!(GREEDY[..3]));
    assert_eq!(few["ended"], "max_words");
}

#[test]
fn a_folder_of_hugging_face_gives_the_same_words() {
    let folder = hugging_face("hugging-face");
    let made = generated(&folder, &PROMPT);
    // Another word ends texts here.
    assert_eq!(made["words"], json!(GREEDY[..9]));
    let chat = generated(&folder, &["--chat", "--prompt", "w4", "--max-words", "1"]);
    assert_eq!(chat["prompt_words"], 3);
}

/// A decoder with its tokenizer in one file; the words are those that transformers goes on with.
#[test]
fn a_gguf_file_is_all_that_a_text_needs() {
    let file = folder("gguf").join("model.gguf");
    let cases = Cases::of("ggml");
    let bytes = cases.file("words-joined/model.gguf");
    fs::write(&file, bytes).expect("the file can be written");
    let told = cases.file("words-joined/words.json");
    let told: Value = serde_json::from_slice(told).expect("JSON");
    let prompt = told["texts"][0]["text"].as_str().expect("a text");
    let made = generated(&file, &["--prompt", prompt, "--max-words", "12"]);
    assert_eq!(made["words"], told["goes_on"]);
    assert_eq!(made["text"], told["says"]);
    let chat = generated(&file, &["--chat", "--prompt", "a", "--max-words", "1"]);
    assert_eq!(chat["ended"], "max_words");
}

#[test]
fn text_comes_on_standard_output_and_figures_beside_it() {
    let path = genai("stream").display().to_string();
    let args = ["generate", &path, "--backends", "cpu"];
    let stop = ["--stop", "w172"];
    let out = kilim(&[&args[..], &PROMPT, &stop].concat());
    assert_eq!(text(&out.stdout), "w378 w182 \n");
    let figures = text(&out.stderr);
    assert!(figures.contains("3 words, ended by: stop"), "{figures}");
}

#[test]
fn a_seed_gives_the_same_text() {
    let folder = genai("seed");
    let drawn = |seed| {
        let draw = [
            "--temperature",
            "3",
            "--top-k",
            "40",
            "--max-words",
            "12",
            "--seed",
            seed,
        ];
        generated(&folder, &[&PROMPT[..], &draw].concat())["words"].clone()
    };
    assert_eq!(drawn("1"), drawn("1"));
    assert_ne!(drawn("1"), drawn("2"));
}

#[test]
fn what_is_missing_is_said() {
    let folder = genai("missing");
    let path = folder.display().to_string();
    let generate = ["generate", &path, "--backends", "cpu", "--prompt", "w4"];
    let error = fails(3, &[&generate[..], &["--chat"]].concat());
    assert!(error.contains("chat template"), "{error}");
    let error = fails(3, &[&generate[..], &["--top-p", "2"]].concat());
    assert!(error.contains("top_p"), "{error}");
    fs::remove_file(folder.join("tokenizer.json")).expect("the file was there");
    let error = fails(4, &generate);
    assert!(error.contains("tokenizer.json"), "{error}");
    fs::remove_file(folder.join("genai_config.json")).expect("the file was there");
    let error = fails(4, &generate);
    assert!(error.contains("config.json"), "{error}");
}
