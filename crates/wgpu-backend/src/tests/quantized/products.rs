//! Matrix products, convolutions, and what becomes of their sums.

use kilim_core::ops::*;
use kilim_core::{DType, Tensor};

use super::super::harness::*;
use super::*;

#[test]
fn matrix_products() {
    if gpu().is_none() {
        return;
    }
    for (a, b) in [
        (vec![5, 7], vec![7, 3]),
        (vec![64, 36], vec![36, 272]),
        (vec![2, 3, 4, 8], vec![8, 4]),
        (vec![2, 1, 3, 8], vec![3, 8, 6]),
        (vec![9], vec![9, 5]),
        (vec![1, 900], vec![900, 20]),
    ] {
        let n = b[b.len() - 1];
        for (x, w) in [
            (DType::U8, DType::I8),
            (DType::I8, DType::I8),
            (DType::U8, DType::U8),
        ] {
            for weights in KNOWN {
                for parameters in KNOWN {
                    for count in [1, n] {
                        eprintln!("{a:?} {b:?} {x} {w} {count}");
                        let a = Given::Fed(bytes(x, &a, 1));
                        let b = weights(bytes(w, &b, 2));
                        let x_zero = parameters(bytes(x, &[], 3));
                        let w_zero = parameters(bytes(w, &[count], 4));
                        let given = [a.clone(), b.clone(), x_zero.clone(), w_zero.clone()];
                        agree(MatMulInteger::default(), &given, 1, 0.0);
                        let given = [
                            a,
                            parameters(one(&scales(1, 0.02, 5))),
                            x_zero,
                            b,
                            parameters(scales(count, 0.003, 6)),
                            w_zero,
                            parameters(one(&scales(1, 0.3, 7))),
                            parameters(bytes(x, &[], 8)),
                            parameters(biases(n)),
                        ];
                        agree(QLinearMatMul::default(), &given, 1, 0.0);
                    }
                }
            }
        }
        let given = [
            Given::Fed(bytes(DType::I8, &a, 1)),
            Given::Constant(bytes(DType::I8, &b, 2)),
            Given::Constant(bytes(DType::I8, &[], 3)),
            Given::Absent,
            Given::Constant(biases(n)),
        ];
        let requantize = Some(requantize(n, DType::I8));
        agree(MatMulInteger { requantize }, &given, 1, 0.0);
    }
}

fn biases(n: usize) -> Tensor {
    let biases: Vec<i32> = (0..n as i32).map(|i| i * 977 - 3000).collect();
    Tensor::from_slice(&[n], &biases).unwrap()
}

#[test]
fn convolutions() {
    if gpu().is_none() {
        return;
    }
    let plain = |groups, channels_last, pads: &[usize]| Conv {
        strides: vec![1; pads.len() / 2],
        dilations: vec![1; pads.len() / 2],
        padding: Padding::Explicit(pads.to_vec()),
        groups,
        channels_last,
        activation: Activation::None,
    };
    let strided = |conv: Conv| Conv {
        strides: vec![2, 3],
        dilations: vec![2, 1],
        ..conv
    };
    let clamped = |conv: Conv| Conv {
        activation: Activation::Clip {
            min: -0.5,
            max: 0.7,
        },
        ..conv
    };
    for (conv, x, w) in [
        (
            plain(1, false, &[1, 1, 1, 1]),
            vec![2, 3, 9, 7],
            vec![5, 3, 3, 3],
        ),
        (
            plain(1, true, &[1, 1, 1, 1]),
            vec![1, 21, 20, 8],
            vec![48, 8, 3, 3],
        ),
        (
            plain(1, true, &[0; 4]),
            vec![1, 6, 5, 12],
            vec![6, 12, 1, 1],
        ),
        (
            plain(3, false, &[0, 1, 2, 1]),
            vec![1, 6, 9, 7],
            vec![9, 2, 3, 2],
        ),
        (plain(2, true, &[0; 4]), vec![1, 9, 7, 8], vec![8, 4, 3, 2]),
        (
            plain(12, true, &[1; 4]),
            vec![2, 9, 7, 12],
            vec![12, 1, 3, 3],
        ),
        (plain(6, true, &[1; 4]), vec![1, 9, 7, 6], vec![12, 1, 3, 3]),
        (
            strided(plain(1, true, &[2; 4])),
            vec![1, 13, 11, 4],
            vec![7, 4, 3, 3],
        ),
        (
            strided(plain(8, true, &[2; 4])),
            vec![1, 13, 11, 8],
            vec![8, 1, 3, 3],
        ),
        (plain(1, false, &[1, 2]), vec![2, 4, 15], vec![6, 4, 4]),
        (
            plain(1, false, &[1; 6]),
            vec![1, 2, 5, 6, 4],
            vec![3, 2, 3, 2, 3],
        ),
    ] {
        let filters = w[0];
        for (data, kind) in [(DType::U8, DType::U8), (DType::I8, DType::I8)] {
            for (weights, parameters) in [
                (KNOWN[0], KNOWN[0]),
                (KNOWN[0], KNOWN[1]),
                (KNOWN[1], KNOWN[1]),
            ] {
                for count in [1, filters] {
                    eprintln!("{conv:?} {x:?} {w:?} {data} {count}");
                    let x = Given::Fed(bytes(data, &x, 1));
                    let w = weights(bytes(kind, &w, 2));
                    let x_zero = parameters(bytes(data, &[], 3));
                    let w_zero = parameters(bytes(kind, &[count], 4));
                    let given = [x.clone(), w.clone(), x_zero.clone(), w_zero.clone()];
                    let conv = conv.clone();
                    let integer = ConvInteger {
                        conv: conv.clone(),
                        requantize: None,
                    };
                    agree(integer, &given, 1, 0.0);
                    let known = matches!(w_zero, Given::Constant(_));
                    let given = [
                        x,
                        parameters(one(&scales(1, 0.02, 5))),
                        x_zero,
                        w,
                        parameters(scales(count, 0.003, 6)),
                        w_zero,
                        parameters(one(&scales(1, 0.3, 7))),
                        parameters(bytes(data, &[], 8)),
                        parameters(biases(filters)),
                    ];
                    agree(QLinearConv { conv: conv.clone() }, &given, 1, 0.0);
                    if known {
                        let conv = clamped(conv);
                        agree(QLinearConv { conv }, &given[..8], 1, 0.0);
                    }
                }
            }
        }
        if conv.channels_last {
            let given = [
                Given::Fed(bytes(DType::I8, &x, 1)),
                Given::Constant(bytes(DType::I8, &w, 2)),
                Given::Constant(bytes(DType::I8, &[], 3)),
                Given::Absent,
                Given::Constant(biases(filters)),
            ];
            let requantize = Some(requantize(filters, DType::I8));
            agree(ConvInteger { conv, requantize }, &given, 1, 0.0);
        }
    }
}
