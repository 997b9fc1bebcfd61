//! Functions of bytes: of one, of two, of a window, of a row.

use kilim_core::fixed::Factor;
use kilim_core::ops::{
    Activation, Affine, AveragePool, BinaryKind, Combination, MaxPool, Padding, QLinearBinary,
    QuantizedBinary, QuantizedResize, QuantizedSoftmax, Requantize, TableLookup, Window,
};
use kilim_core::{DType, Tensor};

use super::super::harness::*;
use super::*;

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
            agree(TableLookup::default(), &given, 1, 0.0);
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
