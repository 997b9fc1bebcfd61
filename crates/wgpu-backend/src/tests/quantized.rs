//! Quantised operators: the bytes of the CPU backend.

use kilim_core::fixed::Factor;
use kilim_core::ops::*;
use kilim_core::{DType, Tensor};

use super::harness::*;

/// Any bytes, the same for the same seed.
fn bytes(dtype: DType, shape: &[usize], seed: u32) -> Tensor {
    let noise = random(shape, seed).to_f64s().unwrap();
    let bytes: Vec<u8> = noise.iter().map(|v| ((v + 1.0) * 127.99) as u8).collect();
    let size = dtype.size();
    let bytes: Vec<u8> = bytes.iter().flat_map(|&b| vec![b; size]).collect();
    Tensor::from_raw(dtype, shape, &bytes).unwrap()
}

/// Scales that are no powers of two.
fn scales(count: usize, around: f32, seed: u32) -> Tensor {
    let noise = random(&[count], seed).to_f64s().unwrap();
    let scales: Vec<f32> = noise
        .iter()
        .map(|&v| around * (1.5 + v as f32 / 1.3))
        .collect();
    f32s(&[count], &scales)
}

fn one(tensor: &Tensor) -> Tensor {
    tensor.reshaped(&[]).unwrap()
}

/// How the parameters of an operator are known.
const KNOWN: [fn(Tensor) -> Given; 2] = [Given::Constant, Given::Fed];

/// Numbers at and beside the middle of two steps, far ones, and what is no number.
fn awkward(scale: f32) -> Vec<f32> {
    let mut x = vec![0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    x.extend([1e-45, -1e-40, 1e-30, 1e30, -1e38]);
    for step in -300..300 {
        let middle = (step as f32 + 0.5) * scale;
        for turn in -2..=2 {
            x.push(f32::from_bits(middle.to_bits().wrapping_add_signed(turn)));
        }
    }
    x
}

#[test]
fn numbers_between_two_steps() {
    if gpu().is_none() {
        return;
    }
    for scale in [0.1f32, 1.0 / 3.0, 0.007_812_5, 3e-39, 1.7e38, 0.499_999_97] {
        let x = awkward(scale);
        let x = f32s(&[x.len()], &x);
        let scale = f32s(&[], &[scale]);
        for dtype in [DType::U8, DType::I8, DType::I16, DType::U16, DType::I4] {
            let zero = bytes(dtype, &[], 3);
            let zero = if dtype == DType::I4 {
                Given::Absent
            } else {
                Given::Fed(zero)
            };
            let op = QuantizeLinear {
                axis: 0,
                block: 0,
                output: Some(dtype),
            };
            let [x, scale] = [x.clone(), scale.clone()].map(Given::Fed);
            agree(op, &[x, scale, zero], 1, 0.0);
        }
        let op = AffineQuantize {
            scale: scale.to_f64s().unwrap()[0] as f32,
            zero_point: -7,
            output: DType::I8,
        };
        agree(op, &[Given::Fed(x)], 1, 0.0);
    }
}

#[test]
fn every_scale_where_it_belongs() {
    if gpu().is_none() {
        return;
    }
    let shape = [3, 5, 7];
    let x = f32s(
        &shape,
        &random(&shape, 5)
            .to_f64s()
            .unwrap()
            .iter()
            .map(|&v| v as f32 * 20.0)
            .collect::<Vec<_>>(),
    );
    for (axis, block, of) in [
        (0, 0, vec![]),
        (0, 0, vec![3]),
        (1, 0, vec![5]),
        (-1, 0, vec![7]),
        (1, 2, vec![3, 3, 7]),
        (2, 3, vec![3, 5, 3]),
    ] {
        let count = of.iter().product();
        let scale = scales(count, 0.1, 8).reshaped(&of).unwrap();
        for dtype in [DType::U8, DType::I8, DType::U16, DType::I16] {
            for zero in [Given::Fed(bytes(dtype, &of, 9)), Given::Absent] {
                let quantize = QuantizeLinear {
                    axis,
                    block,
                    output: Some(dtype),
                };
                let [x, q] = [x.clone(), bytes(dtype, &shape, 4)].map(Given::Fed);
                let scale = Given::Fed(scale.clone());
                agree(quantize, &[x, scale.clone(), zero.clone()], 1, 0.0);
                let dequantize = DequantizeLinear { axis, block };
                agree(dequantize, &[q, scale, zero], 1, 0.0);
            }
        }
        let given = [bytes(DType::F8E4M3FN, &shape, 4), scale].map(Given::Fed);
        agree(DequantizeLinear { axis, block }, &given, 1, 0.0);
    }
}

fn requantize(factors: usize, output: DType) -> Requantize {
    let reals = scales(factors, 0.0007, 17).to_f64s().unwrap();
    Requantize {
        factors: reals.iter().map(|&r| Factor::new(r).unwrap()).collect(),
        zero_point: -4,
        range: if output == DType::U8 {
            [0, 255]
        } else {
            [-128, 120]
        },
        output,
    }
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

#[test]
fn pointwise() {
    if gpu().is_none() {
        return;
    }
    let affine = |scale, zero| Affine { scale, zero };
    for (a, b) in [
        (vec![3, 5, 7], vec![3, 5, 7]),
        (vec![3, 5, 7], vec![7]),
        (vec![2, 1, 4, 5], vec![3, 1, 5]),
        (vec![], vec![11]),
    ] {
        for (x, y) in [(DType::U8, DType::U8), (DType::I8, DType::U8)] {
            let given = [bytes(x, &a, 1), bytes(y, &b, 2)].map(Given::Fed);
            use BinaryKind::*;
            for kind in [Add, Sub, Mul, Max, Min] {
                let op = QLinearBinary {
                    kind,
                    operands: [affine(0.037, 12.0), affine(0.011, -3.0)],
                    offset: if kind == Add { 0.3 } else { 0.0 },
                    result: affine(0.041, 5.0),
                    range: [-128.0, 100.0],
                    output: DType::I8,
                };
                agree(op, &given, 1, 0.0);
            }
            let factors = [0.41, 0.73].map(|f| Factor::new(f).unwrap());
            for combination in [
                Combination::Sum {
                    left_shift: 20,
                    factors,
                },
                Combination::Difference {
                    left_shift: 20,
                    factors,
                },
                Combination::Product,
            ] {
                let op = QuantizedBinary {
                    zero_points: [7, -3],
                    combination,
                    result: Requantize {
                        factors: vec![match combination {
                            Combination::Product => Factor::new(0.0031).unwrap(),
                            _ => Factor::new(1.3 / f64::from(1 << 20)).unwrap(),
                        }],
                        ..requantize(1, DType::I8)
                    },
                };
                agree(op, &given, 1, 0.0);
            }
        }
    }
    for dtype in [DType::I8, DType::U8] {
        for to in [DType::I8, DType::I16, DType::I32] {
            let table = Tensor::from_slice(&[256], &(0..256).map(|i| i * 31).collect::<Vec<i32>>());
            let table = match to {
                DType::I32 => table.unwrap(),
                _ => bytes(to, &[256], 6),
            };
            let given = [bytes(dtype, &[9, 11], 5), table].map(Given::Fed);
            agree(TableLookup, &given, 1, 0.0);
        }
    }
    let sums: Vec<i32> = (0..3000i32)
        .map(|i| i.wrapping_mul(0x9E37_79B9u32 as i32) >> (i % 20))
        .collect();
    let sums = Tensor::from_slice(&[1000, 3], &sums).unwrap();
    for count in [1, 3] {
        agree(
            requantize(count, DType::U8),
            &[Given::Fed(sums.clone())],
            1,
            0.0,
        );
    }
}

#[test]
fn pools_of_bytes() {
    if gpu().is_none() {
        return;
    }
    let window = Window {
        kernel: vec![3, 2],
        strides: vec![2, 1],
        dilations: vec![],
        padding: Padding::Explicit(vec![1, 1, 1, 0]),
        ceil_mode: true,
    };
    for dtype in [DType::I8, DType::U8] {
        for channels_last in [false, true] {
            let given = [Given::Fed(bytes(dtype, &[2, 6, 7, 5], 3))];
            let op = MaxPool {
                window: window.clone(),
                column_major: false,
                channels_last,
            };
            agree(op, &given, 1, 0.0);
            for count_include_pad in [false, true] {
                let op = AveragePool {
                    window: window.clone(),
                    count_include_pad,
                    channels_last,
                    activation: Activation::None,
                };
                agree(op, &given, 1, 0.0);
            }
        }
    }
}

#[test]
fn scales_from_the_data() {
    if gpu().is_none() {
        return;
    }
    for (count, size) in [(1, 1.0), (77, 3.7), (5000, 1e-3), (3, 0.0), (90, 1e-37)] {
        let data = random(&[count], 7).to_f64s().unwrap();
        for sign in [1.0, -1.0] {
            // From both sides of zero, and from one.
            for offset in [0.1, 1.0, -1.5] {
                let mut x: Vec<f32> = data
                    .iter()
                    .map(|&v| sign * size * (v as f32 + offset))
                    .collect();
                if count > 80 {
                    x[9] = f32::NAN;
                }
                agree(
                    DynamicQuantizeLinear,
                    &[Given::Fed(f32s(&[count], &x))],
                    3,
                    0.0,
                );
            }
        }
    }
}

#[test]
fn softmax_in_fixed_point() {
    if gpu().is_none() {
        return;
    }
    for (scale, length) in [(0.1f64, 10), (0.003, 1000), (0.5, 7), (0.02, 1)] {
        let factor = Factor::new(scale * f64::from(1 << 26)).unwrap();
        let op = QuantizedSoftmax {
            factor,
            smallest: -(31.0 / scale).min(255.0) as i32,
        };
        for dtype in [DType::I8, DType::U8] {
            let x = bytes(dtype, &[13, length], length as u32);
            agree(op.clone(), &[Given::Fed(x)], 1, 0.0);
            let even = Tensor::zeros(dtype, &[2, length]).unwrap();
            agree(op.clone(), &[Given::Fed(even)], 1, 0.0);
        }
    }
}

#[test]
fn resized_images() {
    if gpu().is_none() {
        return;
    }
    for (align_corners, half_pixel) in [(false, false), (true, false), (false, true)] {
        for (from, to) in [([7, 5], [13, 17]), ([9, 8], [4, 3]), ([1, 6], [5, 1])] {
            for dtype in [DType::U8, DType::I8] {
                let op = QuantizedResize {
                    align_corners,
                    half_pixel,
                };
                let x = Given::Fed(bytes(dtype, &[2, from[0], from[1], 3], 5));
                agree(op, &[x, i64s(&to)], 1, 0.0);
            }
        }
    }
}
