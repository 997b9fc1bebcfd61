//! What fuzzing begins with: the small models of the reference cases, and inputs that led to code that these do not reach.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kilim_test_support::archive::{Archive, Cases};
use kilim_test_support::material;

use crate::input::Input;
use crate::small;

/// Bytes of a seed at most: beyond, an input is read too seldom.
const MOST: usize = 16 << 10;

/// Where a format's seeds are: the archive of `tests/references/`, what a model is called there, and a file beside it.
const PLACES: &[(&str, &str, &str, Option<&str>)] = &[
    ("circle", "circle", "model.circle", None),
    ("gguf", "gguf", "model.gguf", None),
    ("gguf", "ggml", "model.gguf", None),
    ("mnn", "mnn", "model.mnn", Some("model.mnn.weight")),
    ("ncnn", "ncnn", "model.param", Some("model.bin")),
    ("onnx", "frameworks", "model.onnx", None),
    ("onnx", "graphs", "model.onnx", None),
    ("onnx", "microsoft", "model.onnx", None),
    ("onnx", "ml", "model.onnx", None),
    ("onnx", "opsets", "model.onnx", None),
    ("onnx", "pictures", "model.onnx", None),
    ("onnx", "rules", "model.onnx", None),
    ("ort", "ort", "model.ort", None),
    ("pnnx", "pnnx", "model.pnnx.param", Some("model.pnnx.bin")),
    (
        "safetensors",
        "safetensors",
        "model.safetensors",
        Some("config.json"),
    ),
    (
        "safetensors",
        "safetensors",
        "config.json",
        Some("model.safetensors"),
    ),
    ("tengine", "tengine", "model.tmfile", None),
    ("tflite", "tflite", "model.tflite", None),
    ("tflite", "variables", "model.tflite", None),
    ("tnn", "tnn", "model.tnnproto", Some("model.tnnmodel")),
];

/// The seeds of a format that stand in the reference cases, or are made, by their names.
pub fn seeds(format: &str) -> BTreeMap<String, Vec<u8>> {
    let mut seeds = BTreeMap::new();
    for &(_, kind, model, beside) in PLACES.iter().filter(|place| place.0 == format) {
        let cases = Cases::of(kind);
        for (path, _) in cases.archive.entries() {
            let Some(case) = path.strip_suffix(model).filter(|c| c.ends_with('/')) else {
                continue;
            };
            let beside = beside.and_then(|name| cases.archive.get(&format!("{case}{name}")));
            for (structure, passes) in [(false, false), (true, false), (false, true)] {
                let model = cases.file(path);
                let input = Input {
                    structure,
                    passes,
                    model,
                    beside,
                };
                // One that is only looked at differs where weights are missing.
                if input.write().len() <= MOST * 2 && !(structure && beside.is_none()) {
                    let letter = char::from(input.write()[0]);
                    let name = format!("{kind}-{}-{letter}", path.replace('/', "-"));
                    seeds.insert(name, input.write());
                }
            }
        }
    }
    for (name, model) in small::models(format) {
        let (structure, passes, beside) = (false, false, None);
        let model = &model[..];
        seeds.insert(
            name,
            Input {
                structure,
                passes,
                model,
                beside,
            }
            .write(),
        );
    }
    seeds
}

/// Where the inputs of a format are kept that fuzzing found.
pub fn kept_at(format: &str) -> PathBuf {
    let folder = material::root().join("crates/formats/tests/fuzzed/corpus");
    folder.join(format!("{format}.zip"))
}

/// The inputs of a format that fuzzing found, by their names; none where there is no archive.
///
/// # Panics
/// Where the archive cannot be read.
pub fn kept(format: &str) -> BTreeMap<String, Vec<u8>> {
    let Ok(file) = std::fs::read(kept_at(format)) else {
        return BTreeMap::new();
    };
    let archive = Archive::read(file).expect("an archive of inputs");
    let names = archive.entries().map(|(name, _)| name.to_string());
    let inputs = names.map(|name| {
        (
            name.clone(),
            archive.get(&name).unwrap_or_default().to_vec(),
        )
    });
    inputs.collect()
}
