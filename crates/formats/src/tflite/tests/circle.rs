//! Circle files: what is read of them, and what is refused by name.

use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Interrupt, Limits};
use kilim_test_support::tflite::{Field, TestOp, TestTensor, constant, file, op, tensor};

use crate::{ImporterRegistry, ModelFile};

/// A file with Circle's identifier in place of TFLite's.
fn circle(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[4..8].copy_from_slice(b"CIR0");
    bytes
}

fn import(bytes: &[u8]) -> Result<Graph> {
    let registry = ImporterRegistry::default();
    let format = registry.probe(bytes, "").map(|importer| importer.format());
    assert_eq!(format, Some("circle"));
    let bytes = Arc::new(AlignedBytes::copy_of(bytes)?);
    let source = ModelFile::new(bytes, "m").with_interrupt(&Interrupt::NEVER);
    registry.load(&source, &Limits::default())
}

fn refused(tensors: &[TestTensor], node: TestOp) -> Error {
    let last = tensors.len() as i32 - 1;
    let made = import(&circle(file(tensors, &[0], &[last], &[node])));
    made.map(|_| ()).expect_err("it was read")
}

#[test]
fn what_is_not_run_is_named() {
    let pair = || [tensor("x", &[3, 1, 4]), tensor("y", &[1, 4])];
    for (node, why) in [
        (
            op(-8, &[0], &[1], &[]),
            "RUN_MODEL: a model in another file",
        ),
        (
            op(-3, &[0], &[1], &[]),
            "BCQ_FULLY_CONNECTED: weights in binary codes",
        ),
        (
            op(-4, &[0], &[1], &[]),
            "BCQ_GATHER: weights in binary codes",
        ),
        (
            op(-7, &[0], &[1], &[Field::I32(1)]),
            "ROPE: pairs of neighbours",
        ),
        (
            op(-5, &[0], &[1], &[Field::I8(4), Field::I8(1)]),
            "GRU: the states of all steps",
        ),
        (
            op(-9, &[0], &[1], &[]),
            "builtin operator number -9: unknown",
        ),
    ] {
        let error = refused(&pair(), node);
        assert_eq!(error.code(), ErrorCode::Unsupported, "{why}");
        assert!(error.message().contains(why), "{error}");
    }
}

#[test]
fn angles_of_several_places_are_refused() {
    let tensors = [
        tensor("x", &[1, 2, 1, 4]),
        tensor("sines", &[1, 2, 1, 4]),
        tensor("cosines", &[1, 2, 1, 4]),
        tensor("y", &[1, 2, 1, 4]),
    ];
    let error = refused(&tensors, op(-7, &[0, 1, 2], &[3], &[Field::I32(0)]));
    assert!(
        error.message().contains("ROPE: angles of several places"),
        "{error}"
    );
}

#[test]
fn packed_weights_are_refused_by_the_name_of_their_type() {
    let tensors = [
        tensor("x", &[1, 32]),
        TestTensor {
            kind: -2,
            data: vec![0; 36],
            ..tensor("w", &[2, 32])
        },
        tensor("y", &[1, 2]),
    ];
    let error = refused(&tensors, op(9, &[0, 1, -1], &[2], &[]));
    assert!(error.message().contains("GGML_Q4_0"), "{error}");
}

#[test]
fn cut_and_overwritten_files_never_panic() {
    let tensors = [
        tensor("x", &[1, 2, 2, 3]),
        constant("gamma", &[3], &[1.0, 2.0, 3.0]),
        constant("beta", &[1], &[0.5]),
        tensor("y", &[1, 2, 2, 3]),
    ];
    let node = op(-2, &[0, 1, 2], &[3], &[Field::None, Field::I8(1)]);
    let whole = circle(file(&tensors, &[0], &[3], &[node]));
    assert!(import(&whole).is_ok());
    for len in 8..whole.len() {
        let _ = import(&whole[..len]);
    }
    let mut bytes = whole;
    for at in 8..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let old = std::mem::replace(&mut bytes[at], value);
            let _ = import(&bytes);
            bytes[at] = old;
        }
    }
}
