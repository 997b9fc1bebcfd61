//! Quantised tensors: the bytes of `cpu`, or a reason.

use kilim_core::fixed::Factor;
use kilim_core::ops::{
    Affine, BinaryKind, Combination, DequantizeLinear, MatMulInteger, QLinearBinary, QLinearConv,
    QuantizeLinear, QuantizedBinary, QuantizedSoftmax, Requantize, TableLookup,
};
use kilim_core::{DType, Operator, Tensor};

use crate::common::Given::{Constant, Fed};
use crate::common::exact::{self, same_bytes};
use crate::common::{Given, bytes, conv, floats, of_type, quantised, run, scalar, zero};
use crate::neon;

#[test]
fn products_are_exact() {
    let Some(neon) = neon() else { return };
    exact::products(&neon, &exact::TYPES, &exact::MATRICES);
}

/// Two runs: what was packed of the factors of the first is nothing to the second.
#[test]
fn products_of_computed_bytes_are_exact() {
    let Some(neon) = neon() else { return };
    exact::computed_products(&neon, &exact::TYPES, &exact::MATRICES);
}

#[test]
fn convolutions_are_exact() {
    let Some(neon) = neon() else { return };
    exact::convolutions(&neon, &exact::TYPES, &exact::WINDOWS);
}

#[test]
fn bytes_are_dequantised_exactly() {
    let Some(neon) = neon() else { return };
    for dtype in [DType::I8, DType::U8] {
        for scale in [0.01, 0.003_921_569, 1.0 / 3.0, 7.7e-5, 123.4] {
            let inputs = [
                Fed(of_type(dtype, &[2, 3, 257], 37)),
                scalar(scale),
                zero(dtype, 13),
            ];
            let op = DequantizeLinear { axis: 1, block: 0 };
            same_bytes(&neon, op, &inputs, (DType::F32, &[2, 3, 257]));
        }
    }
}

#[test]
fn the_larger_and_the_smaller_byte() {
    let Some(neon) = neon() else { return };
    let all = |f: fn(usize) -> usize| {
        let data: Vec<i8> = (0..65_536).map(|i| f(i) as u8 as i8).collect();
        Fed(Tensor::from_slice(&[256, 256], &data).unwrap())
    };
    let affine = Affine {
        scale: 0.05,
        zero: -5.0,
    };
    for kind in [BinaryKind::Max, BinaryKind::Min] {
        let op = QLinearBinary {
            kind,
            operands: [affine; 2],
            offset: 0.0,
            result: affine,
            range: [-128.0, 127.0],
            output: DType::I8,
        };
        let inputs = [all(|i| i / 256), all(|i| i % 256)];
        same_bytes(&neon, op, &inputs, (DType::I8, &[256, 256]));
    }
}

#[track_caller]
fn refused(op: impl Operator, inputs: &[Given], output: (DType, &[usize]), why: &str) {
    let Some(neon) = neon() else { return };
    let reason = run(&neon, op, inputs, output).unwrap_err();
    assert!(reason.contains(why), "{reason}");
}

#[test]
fn what_would_be_other_bytes_is_refused() {
    let shape = &[2, 8][..];
    let two = || [Fed(bytes(shape, 37)), Fed(bytes(shape, 91))];
    let affine = |scale, zero| Affine { scale, zero };
    for kind in [
        BinaryKind::Add,
        BinaryKind::Sub,
        BinaryKind::Mul,
        BinaryKind::Max,
    ] {
        let op = QLinearBinary {
            kind,
            operands: [affine(0.05, -5.0), affine(0.03, 7.0)],
            offset: 0.0,
            result: affine(0.1, 3.0),
            range: [-128.0, 127.0],
            output: DType::I8,
        };
        refused(op, &two(), (DType::I8, shape), "to other bytes");
    }
    let factor = Factor::new(0.01).unwrap();
    let op = QuantizedBinary {
        zero_points: [0, 0],
        combination: Combination::Product,
        result: Requantize {
            factors: vec![factor],
            zero_point: 0,
            range: [-128, 127],
            output: DType::I8,
        },
    };
    refused(op, &two(), (DType::I8, shape), "to other bytes");
    let op = QuantizedSoftmax {
        factor,
        smallest: -100,
    };
    let one = [Fed(bytes(shape, 37))];
    refused(op, &one, (DType::I8, shape), "in fixed point");
    let table = Constant(bytes(&[256], 1));
    let inputs = [Fed(bytes(shape, 37)), table];
    refused(
        TableLookup::default(),
        &inputs,
        (DType::I8, shape),
        "tables of its own",
    );
    let groups = QLinearConv {
        conv: conv(8, true),
    };
    let (x, w) = ([1, 7, 9, 8], [8, 1, 3, 3]);
    refused(
        groups,
        &quantised(&x, &w),
        (DType::I8, &x),
        "to other bytes",
    );
    // ACL reads such bytes as unsigned, in every release.
    let computed = [
        Fed(of_type(DType::U8, &[2, 8], 37)),
        Fed(bytes(&[8, 3], 91)),
        zero(DType::U8, 7),
        zero(DType::I8, 0),
    ];
    let op = MatMulInteger::default();
    refused(
        op,
        &computed,
        (DType::I32, &[2, 3]),
        "as if that were uint8",
    );
    let stacks = [
        Fed(bytes(&[2, 2, 8], 37)),
        Fed(bytes(&[2, 8, 3], 91)),
        zero(DType::I8, 7),
        zero(DType::I8, 3),
    ];
    let op = MatMulInteger::default();
    refused(op, &stacks, (DType::I32, &[2, 2, 3]), "not one matrix");
    let op = QuantizeLinear {
        axis: 1,
        block: 0,
        output: None,
    };
    let inputs = [
        Fed(floats(shape, |i| i as f32)),
        scalar(0.3),
        zero(DType::I8, -3),
    ];
    refused(op, &inputs, (DType::I8, shape), "reciprocal");
}
