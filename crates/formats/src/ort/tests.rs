//! Files of onnxruntime's converter, whole, cut and overwritten. `tests/references/` has what they give.

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_test_support::archive::Cases;

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
