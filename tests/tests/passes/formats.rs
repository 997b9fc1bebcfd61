//! Models of other formats become what they become from ONNX.

use std::path::Path;

use kilim::formats::ModelFile;
use kilim_test_support::material;

use super::*;

/// The files of collected models that are not ONNX.
const ENDINGS: [&str; 5] = ["mnn", "param", "tflite", "tmfile", "tnnproto"];

/// Nodes, and those of them that only put elements into another order.
fn counted(graph: &Graph) -> (usize, usize) {
    let (graph, _) = optimised_without(graph, &[]);
    let transposes = names(&graph)
        .iter()
        .filter(|op| **op == "Transpose")
        .count();
    (graph.nodes.len(), transposes)
}

/// What `kilim convert` writes of a graph, read again.
fn written(graph: &Graph) -> Option<Graph> {
    let plain = kilim_convert::lower(graph).ok()?;
    let model = kilim_convert::OnnxModel::new(&plain, &Default::default()).ok()?;
    let mut bytes = Vec::new();
    model.write(&mut bytes).expect("memory");
    let bytes = kilim::core::tensor::AlignedBytes::copy_of(&bytes).expect("memory");
    let file = ModelFile::new(std::sync::Arc::new(bytes), "m.onnx");
    Some(kilim::formats::load_model(&file, &Default::default()).expect("it was written so"))
}

/// Files of a folder and of folders in it.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if ENDINGS
            .iter()
            .any(|end| path.extension().is_some_and(|e| e == *end))
        {
            found.push(path);
        }
    }
}

#[test]
fn no_format_has_transpositions_that_onnx_does_not_have() {
    let Some(models) = material::models() else {
        return;
    };
    let mut found = Vec::new();
    files(&models, &mut found);
    found.sort();
    let options = LoadOptions {
        structure_only: true,
        ..LoadOptions::default()
    };
    let runtime = Runtime::shared();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for path in &found {
        let parsed = runtime.parse(path.as_path(), &options);
        // What cannot be read is a matter of other tests.
        let Ok(graph) = pollster::block_on(parsed) else {
            continue;
        };
        let Some(onnx) = written(&graph) else {
            continue;
        };
        let (own, other) = (counted(&graph), counted(&onnx));
        let name = path.strip_prefix(&models).unwrap_or(path).display();
        println!("{name}: {own:?}, in ONNX {other:?}");
        compared += 1;
        if own.1 > other.1 {
            wrong.push(format!("{name}: {own:?}, in ONNX {other:?}"));
        }
    }
    assert!(compared > 10, "{compared} of {} compared", found.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
