//! Matrix products, convolutions, and what becomes of their sums.

use kilim_core::ops::{
    Activation, Conv, ConvInteger, MatMulInteger, MatMulIntegerToFloat, Padding, QLinearConv,
    QLinearMatMul,
};
use kilim_core::{DType, Tensor};

use super::super::harness::*;
use super::*;

/// How weights are known, and how zero points and scales are.
type Known = [fn(Tensor) -> Given; 2];

/// Data and weights of a product, and their zero points.
struct Quantized {
    types: [DType; 2],
    /// Zero points and scales of the weights.
    count: usize,
    parameters: fn(Tensor) -> Given,
    /// Data, weights, zero point of the data, those of the weights.
    integer: [Given; 4],
}

impl Quantized {
    fn new(types: [DType; 2], shapes: [&[usize]; 2], count: usize, known: Known) -> Quantized {
        let [x, w] = types;
        let [weights, parameters] = known;
        Quantized {
            types,
            count,
            parameters,
            integer: [
                Given::Fed(bytes(x, shapes[0], 1)),
                weights(bytes(w, shapes[1], 2)),
                parameters(bytes(x, &[], 3)),
                parameters(bytes(w, &[count], 4)),
            ],
        }
    }

    /// The inputs with what makes real numbers of the sums, and a bias for each of as many outputs.
    fn real(&self, biases: Option<usize>) -> [Given; 7] {
        let [x, w, x_zero, w_zero] = self.integer.clone();
        let given = self.parameters;
        [
            x,
            w,
            given(one(&scales(1, 0.02, 5))),
            given(scales(self.count, 0.003, 6)),
            x_zero,
            w_zero,
            biases.map_or(Given::Absent, |n| given(scales(n, 0.7, 7))),
        ]
    }

    /// The inputs with what quantises the sums again, and a bias for each of `n` outputs.
    fn linear(self, n: usize) -> [Given; 9] {
        let given = self.parameters;
        let [x, w, x_zero, w_zero] = self.integer;
        [
            x,
            given(one(&scales(1, 0.02, 5))),
            x_zero,
            w,
            given(scales(self.count, 0.003, 6)),
            w_zero,
            given(one(&scales(1, 0.3, 7))),
            given(bytes(self.types[0], &[], 8)),
            given(biases(n)),
        ]
    }
}

/// Data, weights and biases of a product in fixed point.
fn fixed(x: &[usize], w: &[usize], n: usize) -> [Given; 5] {
    [
        Given::Fed(bytes(DType::I8, x, 1)),
        Given::Constant(bytes(DType::I8, w, 2)),
        Given::Constant(bytes(DType::I8, &[], 3)),
        Given::Absent,
        Given::Constant(biases(n)),
    ]
}

fn biases(n: usize) -> Tensor {
    let biases: Vec<i32> = (0..n as i32).map(|i| i * 977 - 3000).collect();
    Tensor::from_slice(&[n], &biases).unwrap()
}

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
                        let known = [weights, parameters];
                        let given = Quantized::new([x, w], [&a, &b], count, known);
                        agree(MatMulInteger::default(), &given.integer, 1, 0.0);
                        agree(MatMulIntegerToFloat, &given.real(None), 1, 0.0);
                        agree(MatMulIntegerToFloat, &given.real(Some(n)), 1, 0.0);
                        let given = given.linear(n);
                        agree(QLinearMatMul::default(), &given, 1, 0.0);
                    }
                }
            }
        }
        let given = fixed(&a, &b, n);
        let requantize = Some(requantize(n, DType::I8));
        agree(MatMulInteger { requantize }, &given, 1, 0.0);
    }
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
                    let known = [weights, parameters];
                    let given = Quantized::new([data, kind], [&x, &w], count, known);
                    let conv = conv.clone();
                    let integer = ConvInteger {
                        conv: conv.clone(),
                        requantize: None,
                    };
                    agree(integer, &given.integer, 1, 0.0);
                    let constant = matches!(given.integer[3], Given::Constant(_));
                    let given = given.linear(filters);
                    agree(QLinearConv { conv: conv.clone() }, &given, 1, 0.0);
                    if constant {
                        let conv = clamped(conv);
                        agree(QLinearConv { conv }, &given[..8], 1, 0.0);
                    }
                }
            }
        }
        if conv.channels_last {
            let given = fixed(&x, &w, filters);
            let requantize = Some(requantize(filters, DType::I8));
            agree(ConvInteger { conv, requantize }, &given, 1, 0.0);
        }
    }
}
