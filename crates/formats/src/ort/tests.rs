//! Files of onnxruntime's converter, whole, cut and overwritten. `tests/references/` has what they give.

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_test_support::archive::Cases;
use kilim_test_support::tflite::{Field, refer, text};

use crate::{ModelFile, load_model};

fn file(case: &str) -> Vec<u8> {
    Cases::of("ort").file(&format!("{case}/model.ort")).to_vec()
}

fn import(bytes: &[u8]) -> Result<Graph> {
    let bytes = Arc::new(AlignedBytes::copy_of(bytes)?);
    load_model(&ModelFile::new(bytes, "a file"), &Limits::default())
}

fn refused(bytes: &[u8]) -> Error {
    match import(bytes) {
        Ok(_) => panic!("it was read"),
        Err(error) => error,
    }
}

/// `bytes` with `new` in the only place of `old`, which is as long.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let places: Vec<usize> = (0..bytes.len())
        .filter(|&at| bytes[at..].starts_with(old))
        .collect();
    let &[at] = &places[..] else {
        panic!("{places:?}");
    };
    let mut bytes = bytes.to_vec();
    bytes[at..at + old.len()].copy_from_slice(new);
    bytes
}

#[test]
fn weights_are_parts_of_the_file() {
    let bytes = Arc::new(AlignedBytes::copy_of(&file("network_fixed")).expect("memory"));
    let source = ModelFile::new(bytes.clone(), "a file");
    let graph = load_model(&source, &Limits::default()).expect("a model");
    let weights = graph.values.iter().filter_map(|v| v.constant.as_ref());
    let largest = weights.max_by_key(|t| t.len()).expect("weights");
    let (file, data) = (
        bytes.as_slice().as_ptr_range(),
        largest.read().expect("numbers"),
    );
    assert!(file.contains(&data.as_ptr()));
}

#[test]
fn nodes_come_in_the_order_in_which_they_run() {
    // In the file the product, which everything else waits for, is the last node.
    let graph = import(&file("fused")).expect("a model");
    let names: Vec<_> = graph.nodes.iter().map(|n| n.op.name()).collect();
    assert_eq!(names.first(), Some(&"Gemm"), "{names:?}");
    let known = |v: &kilim_core::graph::Value| v.fact.concrete().is_some();
    assert!(graph.values.iter().all(known), "every shape is inferred");
}

#[test]
fn other_versions_and_operators_are_named() {
    let whole = file("quantised");
    let error = refused(&replaced(&whole, b"\x01\0\0\x006\0", b"\x01\0\0\x009\0"));
    assert_eq!(error.code(), ErrorCode::Unsupported);
    assert_eq!(
        (error.got(), error.expected()),
        (Some("9"), Some("4, 5, 6"))
    );

    let error = refused(&replaced(&whole, b"QLinearConv\0", b"QWhirlyConv\0"));
    let message = "com.microsoft::QWhirlyConv (opset 1): unknown operator";
    assert!(error.message().contains(message), "{error}");
}

#[test]
fn truncated_and_garbled_files_are_errors() {
    for case in ["attributes", "bodies_then"] {
        let whole = file(case);
        for len in 0..whole.len() {
            let _ = import(&whole[..len]);
        }
        assert!(import(&whole[..whole.len() / 2]).is_err());
        let mut bytes = whole.clone();
        for at in 8..bytes.len() {
            for value in [0, 0xff, !bytes[at]] {
                let old = std::mem::replace(&mut bytes[at], value);
                let _ = import(&bytes);
                bytes[at] = old;
            }
        }
    }
}

/// A file that passes `x` on, with these fields of `Model` from `producer_name` on.
fn described(fields: [Field; 5], graph_doc: Field, props: Field) -> Vec<u8> {
    use Field::{I8, I32, None, Table, Tables, U64};
    let value = Table(vec![I32(1)]);
    let kind = Table(vec![None, I8(1), value]);
    let x = Table(vec![text("x"), None, kind]);
    let nothing = || Tables(Vec::new());
    let ports = || Tables(vec![text("x")]);
    let graph = vec![
        nothing(),
        Tables(vec![x]),
        nothing(),
        None,
        None,
        ports(),
        ports(),
    ];
    let opset = Table(vec![text(""), U64(17)]);
    let mut model = vec![U64(8), Tables(vec![opset])];
    model.extend(fields);
    model.extend([Table(graph), graph_doc, props]);
    let session = Table(vec![text("5"), Table(model)]);
    let mut bytes = vec![0; 8];
    bytes[4..].copy_from_slice(b"ORTM");
    refer(&mut bytes, 0, &session);
    bytes
}

#[test]
fn files_say_who_made_them() {
    let prop = Field::Table(vec![text("labels"), text("cat, dog")]);
    let fields = [
        text("pytorch"),
        text("2.6"),
        text("org.example"),
        Field::U64(3),
        text(""),
    ];
    let bytes = described(fields, text("a network"), Field::Tables(vec![prop]));
    let graph = import(&bytes).expect("a model");
    let said: Vec<_> = graph.metadata.fields().collect();
    let known = [
        ("description", "a network"),
        ("producer", "pytorch"),
        ("producer version", "2.6"),
        ("domain", "org.example"),
        ("version", "3"),
    ];
    assert_eq!(said, known);
    assert_eq!(graph.metadata.entry("labels"), Some("cat, dog"));

    // What onnxruntime writes for a model without a version that says nothing else.
    let none = || Field::None;
    let fields = [none(), none(), none(), Field::U64(i64::MAX as u64), none()];
    let graph = import(&described(fields, none(), none())).expect("a model");
    assert_eq!(*graph.metadata, kilim_core::Metadata::default());

    // One entry of 64 kB, 65536 times.
    let prop = Field::Table(vec![text("k"), text(&"v".repeat(1 << 16))]);
    let fields = std::array::from_fn(|_| Field::None);
    let many = Field::Repeated(1 << 16, Box::new(prop));
    let error = refused(&described(fields, none(), many));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
}
