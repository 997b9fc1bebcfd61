//! Models whole, cut and changed, and what is refused of them. `tests/references/` has what decoders give.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Limits};
use kilim_test_support::archive::Cases;

use super::{CONFIG, INDEX, WEIGHTS, file, models};
use crate::garbage::damaged;
use crate::{GivenFiles, ModelFile, load_model};

/// Files by their names.
type Files = HashMap<String, Vec<u8>>;

/// The files of a case of `tests/references/safetensors.zip`.
fn folder(case: &str) -> Files {
    let cases = Cases::of("safetensors");
    let names = cases.archive.entries().map(|(name, _)| name.to_string());
    let own =
        names.filter_map(|name| Some(name.strip_prefix(case)?.strip_prefix('/')?.to_string()));
    let own = own.filter(|name| !name.contains('/'));
    own.map(|name| {
        let bytes = cases.file(&format!("{case}/{name}")).to_vec();
        (name, bytes)
    })
    .collect()
}

/// Reads the model that the file `opened` is of.
fn import(mut files: Files, opened: &str) -> Result<Graph> {
    let model = files.remove(opened).expect("the file that is opened");
    let shared = |bytes: Vec<u8>| AlignedBytes::copy_of(&bytes).map(Arc::new);
    let beside = files.into_iter();
    let beside = beside.map(|(name, bytes)| -> Result<_> { Ok((name, shared(bytes)?)) });
    let beside = GivenFiles::new(beside.collect::<Result<_>>()?);
    let file = ModelFile::new(shared(model)?, opened).with_external(&beside);
    load_model(&file, &Limits::default())
}

fn refused(files: Files) -> Error {
    match import(files, CONFIG) {
        Ok(_) => panic!("it was read"),
        Err(error) => error,
    }
}

/// A folder whose settings have `to` in place of `from`.
fn with(case: &str, from: &str, to: &str) -> Files {
    let mut files = folder(case);
    let config = String::from_utf8(files[CONFIG].clone()).expect("a text");
    assert!(config.contains(from), "{config}");
    files.insert(CONFIG.to_string(), config.replace(from, to).into_bytes());
    files
}

#[test]
fn models_are_sorted() {
    assert_eq!(models::MODELS.misplaced(), None);
}

/// A file of weights with eight bytes of data.
fn entries(header: &str) -> Result<Vec<file::Entry>> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([0; 8]);
    let header = file::read(bytes.len() as u64, &|from, to| {
        to.copy_from_slice(&bytes[from as usize..][..to.len()]);
        Ok(())
    })?;
    Ok(header.entries)
}

#[test]
fn data_lies_beyond_four_gigabytes() -> Result<()> {
    let (far, end) = (5u64 << 30, (5u64 << 30) + 4);
    let of = |name: &str, from: u64, to: u64| {
        format!(r#""{name}": {{"dtype": "F16", "shape": [2], "data_offsets": [{from}, {to}]}}"#)
    };
    let header = format!("{{{}, {}}}", of("a", 0, far), of("b", far, end));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    let start = bytes.len() as u64;
    let header = file::read(start + end, &|from, to| {
        to.copy_from_slice(&bytes[from as usize..][..to.len()]);
        Ok(())
    })?;
    let b = header.entries.iter().find(|entry| entry.name == "b");
    assert_eq!(b.map(|b| b.data.clone()), Some(start + far..start + end));
    Ok(())
}

#[test]
fn all_data_is_of_one_tensor() {
    let of = |name: &str, from: usize, to: usize| {
        format!(r#""{name}": {{"dtype": "F16", "shape": [2], "data_offsets": [{from}, {to}]}}"#)
    };
    let read = |parts: &[String]| entries(&format!("{{{}}}", parts.join(", ")));
    let both = read(&[of("b", 4, 8), of("a", 0, 4)]).expect("two tensors");
    assert_eq!(both.len(), 2);
    for wrong in [
        [of("a", 0, 4), of("a", 4, 8)],
        [of("a", 0, 4), of("b", 0, 8)],
        [of("a", 0, 4), of("b", 5, 8)],
        [of("a", 0, 2), of("b", 2, 6)],
    ] {
        let error = read(&wrong).expect_err("it is garbled");
        assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    }
}

#[test]
fn weights_stay_as_they_are_in_the_file() {
    let graph = import(folder("llama-bf16"), CONFIG).expect("a graph");
    let inputs: Vec<_> = graph
        .inputs
        .iter()
        .map(|&v| graph.value(v).name.clone())
        .collect();
    assert_eq!(inputs[..2], ["input_ids", "attention_mask"]);
    // The embedding, which is the head, too, and the queries, keys and values of two layers.
    let matrices = graph.values.iter().filter_map(|v| v.constant.as_ref());
    let matrices = matrices.filter(|tensor| tensor.shape() == [32, 16]);
    let types: Vec<_> = matrices.map(|tensor| tensor.dtype()).collect();
    assert_eq!(types, [DType::BF16; 3]);
}

#[test]
fn what_the_network_would_not_do_is_refused() {
    for (case, from, to, why) in [
        (
            "llama-bf16",
            "\"llama\"",
            "\"bert\"",
            "the model type `bert`",
        ),
        (
            "llama-bf16",
            "\"silu\"",
            "\"relu\"",
            "`hidden_act` is `relu`",
        ),
        (
            "llama-bf16",
            "\"llama3\"",
            "\"yarn\"",
            "angles of the type `yarn`",
        ),
        (
            "llama-bf16",
            "\"use_cache\": true",
            "\"quantization_config\": {\"bits\": 4}",
            "quantised weights",
        ),
        (
            "qwen3-bf16",
            "\"use_sliding_window\": false",
            "\"use_sliding_window\": true",
            "windows in some layers",
        ),
        (
            "gemma2-f16",
            "\"full_attention\"",
            "\"sliding_attention\"",
            "layer 1 of the kind",
        ),
        (
            "smollm3-bf16",
            "    0\n",
            "    1\n",
            "layer 3, which turns its heads otherwise",
        ),
    ] {
        let error = refused(with(case, from, to));
        assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
        assert!(error.message().contains(why), "{error}");
    }
}

#[test]
fn settings_that_do_not_fit_the_weights_are_errors() {
    for (from, to) in [
        ("\"hidden_size\": 16", "\"hidden_size\": 32"),
        ("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
        (
            "\"num_hidden_layers\": 2",
            "\"num_hidden_layers\": 4000000000",
        ),
        ("\"num_attention_heads\": 2", "\"num_attention_heads\": 3"),
        ("\"num_attention_heads\": 2", "\"num_attention_heads\": -2"),
        ("\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": \"small\""),
        ("\"factor\": 8.0", "\"factor\": 0.0"),
    ] {
        let error = refused(with("llama-bf16", from, to));
        assert_eq!(error.code(), ErrorCode::InvalidModel, "{to}: {error}");
    }
    // A layer of the file that the network does not have would change the results.
    let fewer = refused(with(
        "llama-bf16",
        "\"num_hidden_layers\": 2",
        "\"num_hidden_layers\": 1",
    ));
    assert!(fewer.message().contains("is not known to have"), "{fewer}");
}

#[test]
fn a_folder_without_its_weights_says_what_is_missing() {
    let mut files = folder("llama-bf16");
    files.remove(WEIGHTS);
    let error = refused(files);
    assert_eq!(error.code(), ErrorCode::Io);
    assert!(
        error.hint().is_some_and(|hint| hint.contains(".onnx")),
        "{error}"
    );

    let mut files = folder("llama-bf16-in-parts");
    let index = String::from_utf8(files[INDEX].clone()).expect("a text");
    let part = files
        .keys()
        .find(|name| name.contains("-of-"))
        .cloned()
        .expect("a part");
    files.remove(&part);
    assert_eq!(refused(files.clone()).code(), ErrorCode::Io);
    // No name of the list leads out of the folder.
    let outside = index.replace(&part, "../secret");
    files.insert(INDEX.to_string(), outside.into_bytes());
    assert_eq!(refused(files).code(), ErrorCode::InvalidModel);
}

#[test]
fn elements_of_other_types_are_named() {
    let mut files = folder("llama-bf16");
    let weights = files.get_mut(WEIGHTS).expect("weights");
    let at = weights.windows(6).position(|part| part == b"\"BF16\"");
    weights[at.expect("a type")..][..6].copy_from_slice(b"\"I16\" ");
    let error = refused(files);
    assert_eq!(error.code(), ErrorCode::Unsupported);
    assert!(error.message().contains("elements of type I16"), "{error}");
}

#[test]
fn damaged_files_never_panic() {
    let files = folder("llama-bf16");
    for (name, step) in [(CONFIG, 16), (WEIGHTS, 64)] {
        damaged(&files[name], step, |bytes| {
            let mut files = files.clone();
            files.insert(name.to_string(), bytes.to_vec());
            let _ = import(files, CONFIG);
        });
    }
}

#[test]
fn files_of_weights_say_what_they_are_of() {
    for case in ["llama-bf16", "llama-bf16-in-parts"] {
        let graph = import(folder(case), CONFIG).expect("a graph");
        assert_eq!(graph.metadata.entry("format"), Some("pt"), "{case}");
    }
    let said = |header: &str| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        let read = file::read(bytes.len() as u64, &|from, to| {
            to.copy_from_slice(&bytes[from as usize..][..to.len()]);
            Ok(())
        });
        read.expect("a header").metadata
    };
    let texts = said(r#"{"__metadata__": {"author": "me", "steps": 3, "z": ""}}"#);
    let known = [("author", "me"), ("z", "")];
    assert_eq!(texts, known.map(|(k, t)| (k.to_string(), t.to_string())));
    assert_eq!(said(r#"{"__metadata__": ["author"]}"#), []);
}
