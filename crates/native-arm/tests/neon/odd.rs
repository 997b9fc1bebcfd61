//! NaN and infinities in what is convolved, multiplied, normalised, resized and moved.

use kilim_core::ops::{
    BatchNorm, Binary, BinaryKind, Concat, Gemm, Lrn, MatMul, Softmax, SoftmaxKind, Transpose,
    Unary, UnaryKind,
};
use kilim_core::{DType, Tensor};

use crate::agreement::{agrees, check};
use crate::common::Given::{Constant, Fed};
use crate::common::{RESIZES, conv, conv_transpose, extremes, floats, noise, resize, resized, run};
use crate::neon;

const ODD: [f32; 3] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];

/// Numbers without a pattern, and an odd one at `at`.
fn one(shape: &[usize], odd: f32, at: usize) -> Tensor {
    let noise = noise(shape, 3).as_slice::<f32>().unwrap().to_vec();
    floats(shape, |i| if i == at { odd } else { noise[i] })
}

#[test]
fn odd_numbers_in_convolutions() {
    let mut results = Vec::new();
    for odd in ODD {
        for channels_last in [true, false] {
            let (c, m, side) = (5, 7, 6);
            let (x, y, d) = match channels_last {
                true => ([1, side, side, c], [1, side, side, m], [1, side, side, c]),
                false => ([1, c, side, side], [1, m, side, side], [1, c, side, side]),
            };
            let data = one(&x, odd, x.iter().product::<usize>() / 2 + 1);
            let w = noise(&[m, c, 3, 3], 2);
            let what = |name: &str| format!("{name} {x:?} {odd}");
            results.push(agrees(
                &what("Conv"),
                conv(1, channels_last),
                &[Fed(data.clone()), Constant(w)],
                &y,
            ));
            let w = one(&[m, c, 3, 3], odd, 7);
            results.push(agrees(
                &what("Conv weights"),
                conv(1, channels_last),
                &[Fed(noise(&x, 1)), Constant(w)],
                &y,
            ));
            let w = noise(&[c, 1, 3, 3], 2);
            results.push(agrees(
                &what("depthwise"),
                conv(c, channels_last),
                &[Fed(data.clone()), Constant(w)],
                &d,
            ));
            let w = one(&[c, 1, 3, 3], odd, 7);
            results.push(agrees(
                &what("depthwise weights"),
                conv(c, channels_last),
                &[Fed(noise(&x, 1)), Constant(w)],
                &d,
            ));
            let w = noise(&[c, m, 3, 3], 2);
            results.push(agrees(
                &what("ConvTranspose"),
                conv_transpose(1, channels_last),
                &[Fed(data.clone()), Constant(w)],
                &y,
            ));
            let w = noise(&[c, m, 3, 3], 2);
            let s = 2 * side - 1;
            let y2 = match channels_last {
                true => [1, s, s, m],
                false => [1, m, s, s],
            };
            results.push(agrees(
                &what("ConvTranspose 2"),
                conv_transpose(2, channels_last),
                &[Fed(data), Constant(w)],
                &y2,
            ));
        }
    }
    check(results);
}

/// In the Winograd domain, which ACL and `cpu` choose where there are many channels, an odd number makes odd
/// ones of all results of its tile. None that depends on it is a number, and none far from it is not.
#[test]
fn odd_numbers_in_large_convolutions() {
    let Some(neon) = neon() else { return };
    for odd in ODD {
        for channels_last in [true, false] {
            let (x, at) = match channels_last {
                true => ([1, 16, 16, 32], (5 * 16 + 5) * 32 + 3),
                false => ([1, 32, 16, 16], (3 * 16 + 5) * 16 + 5),
            };
            let place = |i: usize| match channels_last {
                true => (i / 32 / 16, i / 32 % 16),
                false => (i / 16 % 16, i % 16),
            };
            let inputs = [Fed(one(&x, odd, at)), Constant(noise(&[32, 32, 3, 3], 2))];
            let op = conv(1, channels_last);
            let got = run(&neon, op.clone(), &inputs, (DType::F32, &x)).unwrap();
            let inputs = [Fed(one(&x, 0.0, at)), Constant(noise(&[32, 32, 3, 3], 2))];
            let want = run(&kilim_simd_cpu::backend(), op, &inputs, (DType::F32, &x)).unwrap();
            let (got, want) = (
                got[0].as_slice::<f32>().unwrap(),
                want[0].as_slice::<f32>().unwrap(),
            );
            for (i, (g, w)) in got.iter().zip(want).enumerate() {
                let (y, x) = place(i);
                let distance = y.abs_diff(5).max(x.abs_diff(5));
                match distance {
                    0..=1 => assert!(!g.is_finite(), "{odd}: {g} at {y} {x}"),
                    2..=6 => {}
                    _ => assert!(
                        (g - w).abs() <= 2e-4,
                        "{odd}: {g} instead of {w} at {y} {x}"
                    ),
                }
            }
        }
    }
}

#[test]
fn odd_numbers_in_products() {
    let mut results = Vec::new();
    for odd in ODD {
        for n in [5, 8, 33] {
            let what = |name: &str| format!("{name} n={n} {odd}");
            let (a, b) = (|| one(&[4, 9], odd, 10), || noise(&[9, n], 2));
            results.push(agrees(
                &what("FullyConnected"),
                MatMul::default(),
                &[Fed(a()), Constant(b())],
                &[4, n],
            ));
            results.push(agrees(
                &what("FC weights"),
                MatMul::default(),
                &[Fed(noise(&[4, 9], 1)), Constant(one(&[9, n], odd, 7))],
                &[4, n],
            ));
            results.push(agrees(
                &what("GEMM"),
                MatMul::default(),
                &[Fed(a()), Fed(b())],
                &[4, n],
            ));
            results.push(agrees(
                &what("GEMM b"),
                MatMul::default(),
                &[Fed(noise(&[4, 9], 1)), Fed(one(&[9, n], odd, 7))],
                &[4, n],
            ));
            let bias = one(&[n], odd, 2);
            let gemm = Gemm {
                alpha: 1.0,
                beta: 1.0,
                transpose_a: false,
                transpose_b: false,
                activation: Default::default(),
            };
            results.push(agrees(
                &what("bias"),
                gemm.clone(),
                &[
                    Fed(noise(&[4, 9], 1)),
                    Constant(b()),
                    Constant(bias.clone()),
                ],
                &[4, n],
            ));
            results.push(agrees(
                &what("zero by it"),
                MatMul::default(),
                &[Fed(a()), Constant(floats(&[9, n], |_| 0.0))],
                &[4, n],
            ));
            let t = MatMul {
                transpose_b: true,
                ..MatMul::default()
            };
            results.push(agrees(
                &what("transposed"),
                t.clone(),
                &[Fed(a()), Fed(noise(&[n, 9], 2))],
                &[4, n],
            ));
            let stack = one(&[3, 4, 9], odd, 40);
            results.push(agrees(
                &what("stack"),
                t,
                &[Fed(stack), Fed(noise(&[3, n, 9], 2))],
                &[3, 4, n],
            ));
        }
    }
    check(results);
}

#[test]
fn odd_numbers_in_rows() {
    let mut results = Vec::new();
    for odd in ODD {
        for channels_last in [true, false] {
            for c in [5, 8] {
                let shape = if channels_last {
                    [2, 3, 4, c]
                } else {
                    [2, c, 3, 4]
                };
                let what = |name: &str| format!("{name} {shape:?} {odd}");
                let lrn = Lrn {
                    alpha: 0.02,
                    beta: 0.75,
                    bias: 1.5,
                    size: 3,
                    channels_last,
                };
                results.push(agrees(
                    &what("Lrn"),
                    lrn,
                    &[Fed(one(&shape, odd, 17))],
                    &shape,
                ));
                let norm = BatchNorm {
                    epsilon: 1e-5,
                    channels_last,
                };
                let row = |seed, f: fn(f32) -> f32| {
                    let r = noise(&[c], seed).as_slice::<f32>().unwrap().to_vec();
                    Constant(floats(&[c], |i| f(r[i])))
                };
                let inputs = [
                    Fed(one(&shape, odd, 17)),
                    row(2, |v| v),
                    row(3, |v| v),
                    row(4, |v| v),
                    row(5, |v| v.abs() + 0.1),
                ];
                results.push(agrees(&what("BatchNorm"), norm.clone(), &inputs, &shape));
                let inputs = [
                    Fed(noise(&shape, 1)),
                    Constant(one(&[c], odd, 2)),
                    row(3, |v| v),
                    row(4, |v| v),
                    row(5, |v| v.abs() + 0.1),
                ];
                results.push(agrees(
                    &what("BatchNorm scale"),
                    norm.clone(),
                    &inputs,
                    &shape,
                ));
                let inputs = [
                    Fed(extremes(&shape)),
                    row(2, |v| v),
                    row(3, |v| v),
                    row(4, |v| v),
                    row(5, |v| v - v),
                ];
                results.push(agrees(
                    &what("BatchNorm without variance"),
                    norm,
                    &inputs,
                    &shape,
                ));
            }
        }
        for n in [1, 5, 8] {
            for kind in [SoftmaxKind::Softmax, SoftmaxKind::LogSoftmax] {
                for axis in [0, 1, 2] {
                    let op = Softmax {
                        kind,
                        axis,
                        beta: 1.0,
                    };
                    let what = |name: &str| format!("{kind:?} {name} axis={axis} n={n} {odd}");
                    results.push(agrees(
                        &what("one"),
                        op.clone(),
                        &[Fed(one(&[3, 4, n], odd, n / 2))],
                        &[3, 4, n],
                    ));
                    results.push(agrees(
                        &what("all"),
                        op.clone(),
                        &[Fed(floats(&[3, 4, n], |_| odd))],
                        &[3, 4, n],
                    ));
                    let far = floats(&[3, 4, n], |i| [1e30, -1e30, 100.0, -100.0, 0.0][i % 5]);
                    results.push(agrees(&what("far"), op, &[Fed(far)], &[3, 4, n]));
                }
            }
        }
    }
    check(results);
}

#[test]
fn odd_numbers_are_resized_and_moved() {
    let mut results = Vec::new();
    for odd in ODD {
        for (mode, coordinates) in RESIZES {
            for (x, y) in [
                ([1, 3, 5, 4], [1, 3, 10, 8]),
                ([1, 5, 4, 3], [1, 10, 8, 3]),
                ([1, 5, 4, 8], [1, 7, 9, 8]),
                ([1, 9, 8, 3], [1, 4, 5, 3]),
                ([1, 3, 1, 1], [1, 3, 4, 4]),
                ([1, 3, 4, 4], [1, 3, 1, 1]),
            ] {
                let n: usize = x.iter().product();
                results.push(agrees(
                    &format!("{mode:?} {coordinates:?} {x:?} {y:?} {odd}"),
                    resize(mode, coordinates),
                    &resized(one(&x, odd, n / 2), &y),
                    &y,
                ));
            }
        }
    }
    for kind in [
        UnaryKind::Neg,
        UnaryKind::HardSigmoid {
            alpha: 0.2,
            beta: 0.5,
        },
    ] {
        results.push(agrees(
            &format!("{kind:?}"),
            Unary(kind),
            &[Fed(extremes(&[4, 8]))],
            &[4, 8],
        ));
    }
    use BinaryKind::*;
    for kind in [Add, Sub, Mul, Div, Max, Min, PRelu] {
        for n in [13, 16] {
            let (a, b) = (
                extremes(&[13, n]),
                extremes(&[13, n]).as_slice::<f32>().unwrap().to_vec(),
            );
            let b = floats(&[13, n], |i| b[(i * 5 + i / n) % (13 * n)]);
            results.push(agrees(
                &format!("{kind:?} of extremes n={n}"),
                Binary::new(kind),
                &[Fed(a.clone()), Fed(b.clone())],
                &[13, n],
            ));
            let row = floats(&[n], |i| b.as_slice::<f32>().unwrap()[i]);
            results.push(agrees(
                &format!("{kind:?} of extremes row n={n}"),
                Binary::new(kind),
                &[Fed(a.clone()), Fed(row)],
                &[13, n],
            ));
            let row = floats(&[13, 1], |i| b.as_slice::<f32>().unwrap()[i]);
            results.push(agrees(
                &format!("{kind:?} of extremes column n={n}"),
                Binary::new(kind),
                &[Fed(row), Fed(a)],
                &[13, n],
            ));
        }
    }
    results.push(agrees(
        "Concat",
        Concat { axis: 1 },
        &[Fed(extremes(&[3, 5])), Fed(extremes(&[3, 8]))],
        &[3, 13],
    ));
    results.push(agrees(
        "Transpose",
        Transpose { perm: vec![1, 0] },
        &[Fed(extremes(&[3, 5]))],
        &[5, 3],
    ));
    check(results);
}
