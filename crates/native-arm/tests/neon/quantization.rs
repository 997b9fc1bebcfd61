//! Quantised tensors: the bytes of `cpu`, or a reason.

use kilim_core::fixed::Factor;
use kilim_core::ops::{
    Activation, Affine, BinaryKind, Combination, Conv, ConvInteger, DequantizeLinear,
    MatMulInteger, QLinearBinary, QLinearConv, QLinearMatMul, QuantizeLinear, QuantizedBinary,
    QuantizedSoftmax, Requantize, TableLookup,
};
use kilim_core::{DType, Operator, Tensor};

use crate::common::Given::{Constant, Fed};
use crate::common::{Given, bytes, conv, floats, of_type, run, scalar, zero};
use crate::{difference, neon};

#[track_caller]
fn same_bytes(op: impl Operator + Clone, inputs: &[Given], output: (DType, &[usize])) {
    let what = format!("{op:?}");
    let d = difference(op, inputs, output);
    assert!(d.is_none_or(|d| d == 0.0), "{what}: {d:?}");
}

/// Element types of data and weights, and the zero points of the weights.
const TYPES: [(DType, DType, i32); 4] = [
    (DType::I8, DType::I8, 3),
    (DType::I8, DType::I8, 0),
    (DType::U8, DType::I8, 0),
    (DType::U8, DType::U8, 131),
];

const CLAMP: Activation = Activation::Clip {
    min: -5.0,
    max: 20.0,
};

#[test]
fn products_are_exact() {
    for (data, weights, z) in TYPES {
        for (m, k, n) in [(5, 33, 20), (1, 129, 10), (64, 48, 96)] {
            for activation in [Activation::None, Activation::Relu, CLAMP] {
                let bias: Vec<i32> = (0..n as i32).map(|i| i * 300 - 900).collect();
                let scales = (0..n).map(|i| 0.001 + 0.0007 * i as f32);
                let scales: Vec<f32> = scales.collect();
                let inputs = [
                    Fed(of_type(data, &[m, k], 37)),
                    scalar(0.05),
                    zero(data, 7),
                    Constant(of_type(weights, &[k, n], 91)),
                    Constant(Tensor::from_slice(&[n], &scales).unwrap()),
                    zero(weights, z),
                    scalar(0.4),
                    zero(data, 40),
                    Constant(Tensor::from_slice(&[n], &bias).unwrap()),
                ];
                same_bytes(QLinearMatMul { activation }, &inputs, (data, &[m, n]));
            }
            let fixed = Requantize {
                factors: vec![Factor::new(0.0013).unwrap()],
                zero_point: 3,
                range: [-100, 120],
                output: DType::I8,
            };
            for requantize in [None, Some(fixed)] {
                let output = match requantize {
                    None => DType::I32,
                    Some(_) => DType::I8,
                };
                let inputs = [
                    Fed(of_type(data, &[m, k], 37)),
                    Constant(of_type(weights, &[k, n], 91)),
                    zero(data, 7),
                    zero(weights, z),
                ];
                same_bytes(MatMulInteger { requantize }, &inputs, (output, &[m, n]));
            }
        }
    }
}

/// Two runs: what was packed of the factors of the first is nothing to the second.
#[test]
fn products_of_computed_bytes_are_exact() {
    for (data, weights, z) in TYPES {
        if data != weights {
            continue;
        }
        for (m, k, n) in [(5, 33, 20), (1, 129, 10), (2, 8, 3)] {
            let inputs = [
                Fed(of_type(data, &[m, k], 37)),
                Fed(of_type(weights, &[k, n], 91)),
                zero(data, 7),
                zero(weights, z),
            ];
            let op = MatMulInteger::default();
            same_bytes(op, &inputs, (DType::I32, &[m, n]));
            let inputs = [
                Fed(of_type(data, &[m, k], 37)),
                scalar(0.05),
                zero(data, 7),
                Fed(of_type(weights, &[k, n], 91)),
                scalar(0.02),
                zero(weights, z),
                scalar(0.4),
                zero(data, 40),
            ];
            let op = QLinearMatMul { activation: CLAMP };
            same_bytes(op, &inputs, (data, &[m, n]));
        }
    }
}

#[test]
fn convolutions_are_exact() {
    let geometries = |plain: Conv| {
        let pointwise = Conv {
            padding: kilim_core::ops::Padding::Explicit(vec![0; 4]),
            ..plain.clone()
        };
        let strided = Conv {
            strides: vec![2, 2],
            ..plain.clone()
        };
        let dilated = Conv {
            dilations: vec![2, 2],
            activation: CLAMP,
            ..plain.clone()
        };
        [
            (plain, 3, [2, 7, 9, 6]),
            (pointwise, 1, [2, 7, 9, 6]),
            (strided, 3, [2, 4, 5, 6]),
            (dilated, 3, [2, 5, 7, 6]),
        ]
    };
    for (data, weights, z) in TYPES {
        for (op, kernel, y) in geometries(conv(1, true)) {
            let m = y[3];
            let scales: Vec<f32> = (0..m).map(|i| 0.002 + 0.001 * i as f32).collect();
            let bias: Vec<i32> = (0..m as i32).map(|i| i * 300 - 900).collect();
            let x = || Fed(of_type(data, &[2, 7, 9, 8], 37));
            let w = || Constant(of_type(weights, &[m, 8, kernel, kernel], 91));
            let bias = || Constant(Tensor::from_slice(&[m], &bias).unwrap());
            let inputs = [
                x(),
                scalar(0.05),
                zero(data, 5),
                w(),
                Constant(Tensor::from_slice(&[m], &scales).unwrap()),
                zero(weights, z),
                scalar(0.4),
                zero(data, 40),
                bias(),
            ];
            same_bytes(QLinearConv { conv: op.clone() }, &inputs, (data, &y));
            let inputs = [x(), w(), zero(data, 5), zero(weights, z), bias()];
            let op = ConvInteger {
                conv: Conv {
                    activation: Activation::None,
                    ..op
                },
                requantize: Some(Requantize {
                    factors: (0..m)
                        .map(|i| Factor::new(0.001 + 0.0004 * i as f64).unwrap())
                        .collect(),
                    zero_point: -3,
                    range: [-128, 127],
                    output: DType::I8,
                }),
            };
            same_bytes(op, &inputs, (DType::I8, &y));
        }
    }
}

#[test]
fn bytes_are_dequantised_exactly() {
    for dtype in [DType::I8, DType::U8] {
        for scale in [0.01, 0.003_921_569, 1.0 / 3.0, 7.7e-5, 123.4] {
            let inputs = [
                Fed(of_type(dtype, &[2, 3, 257], 37)),
                scalar(scale),
                zero(dtype, 13),
            ];
            let op = DequantizeLinear { axis: 1, block: 0 };
            same_bytes(op, &inputs, (DType::F32, &[2, 3, 257]));
        }
    }
}

#[test]
fn the_larger_and_the_smaller_byte() {
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
        same_bytes(op, &inputs, (DType::I8, &[256, 256]));
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
    let inputs = [
        Fed(bytes(&[1, 7, 9, 8], 37)),
        scalar(0.05),
        zero(DType::I8, -5),
        Constant(bytes(&[8, 1, 3, 3], 91)),
        scalar(0.01),
        zero(DType::I8, 0),
        scalar(0.4),
        zero(DType::I8, 4),
    ];
    refused(
        groups,
        &inputs,
        (DType::I8, &[1, 7, 9, 8]),
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
