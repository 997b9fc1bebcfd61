//! float16 against float64, a case or more of each family.

use kilim_core::backend::Backend;
use kilim_core::ops::{
    Activation, AveragePool, BatchNorm, Binary, BinaryKind, Concat, Conv, Gemm, MatMul, Padding,
    Reduce, ReduceKind, ResizeMode, Softmax, SoftmaxKind, Transpose, Unary, UnaryKind,
};
use kilim_core::{Operator, Tensor};

use crate::cl;
use crate::common::half::{self, To, sum_of};
use crate::common::{
    Constant, Fed, Given, RESIZES, conv, conv_transpose, floats, max_pool, noise, resize, resized,
    window,
};

/// Roundings that a function may be off by: the ONNX suite wants halves within 1e-3 of the result.
const FUNCTION: f64 = 2.0;
/// Four elements by two weights each, which are rounded, too, and so is 1 less a weight.
const INTERPOLATION: f64 = 4.0 * 4.0;

fn check(
    what: &str,
    op: impl Operator + Clone,
    inputs: &[Given],
    y: &[usize],
    roundings: f64,
    to: To,
) {
    if let Some(cl) = cl() {
        half::check(&cl, what, op, inputs, y, roundings, to);
    }
}

#[test]
fn half_functions() {
    let Some(cl) = cl() else { return };
    assert!(cl.describe().f16());
    let shape = [3, 40];
    for (kind, roundings) in [
        (UnaryKind::Abs, 0.0),
        (UnaryKind::Neg, 0.0),
        (UnaryKind::Round, 0.0),
        (UnaryKind::Relu, 0.0),
        (
            UnaryKind::Clip {
                min: -0.5,
                max: 0.5,
            },
            0.0,
        ),
        (UnaryKind::LeakyRelu { alpha: 0.125 }, FUNCTION),
        (UnaryKind::Sigmoid, FUNCTION),
        (UnaryKind::Tanh, FUNCTION),
        (UnaryKind::Exp, FUNCTION),
        (UnaryKind::HardSwish, 4.0),
        (UnaryKind::Swish { alpha: 1.0 }, FUNCTION + 1.0),
    ] {
        let x = floats(&shape, |i| i as f32 / 9.0 - 6.0);
        let what = format!("{kind:?}");
        check(&what, Unary(kind), &[Fed(x)], &shape, roundings, To::Result);
    }
    let x = floats(&shape, |i| (i + 1) as f32 / 7.0);
    let root = Unary(UnaryKind::Sqrt);
    check("Sqrt", root, &[Fed(x)], &shape, FUNCTION, To::Result);
}

#[test]
fn half_functions_of_two() {
    use BinaryKind::*;
    for kind in [Add, Sub, Mul, Div, Max, Min, PRelu] {
        for (n, other) in [(40, vec![3, 40]), (37, vec![37])] {
            if matches!(kind, Max | Min) && n == 37 {
                continue;
            }
            let second = noise(&other, 2);
            let second = match kind {
                PRelu => Constant(second),
                _ => Fed(second),
            };
            let roundings = match kind {
                Max | Min => 0.0,
                _ => 1.0,
            };
            let what = format!("{kind:?} by {other:?}");
            let inputs = [Fed(noise(&[3, n], 1)), second];
            let op = Binary::new(kind);
            check(&what, op, &inputs, &[3, n], roundings, To::Result);
        }
    }
}

#[test]
fn half_rows() {
    let shape = [3, 7, 37];
    let softmax = |kind| Softmax {
        kind,
        axis: 2,
        beta: 1.0,
    };
    let x = || [Fed(floats(&shape, |i| (i * 37 % 101) as f32 / 25.0 - 2.0))];
    let op = softmax(SoftmaxKind::Softmax);
    let roundings = 6.0 + sum_of(37);
    check("Softmax", op, &x(), &shape, roundings, To::Result);
    let op = softmax(SoftmaxKind::LogSoftmax);
    let roundings = 4.0 + sum_of(37);
    check("LogSoftmax", op, &x(), &shape, roundings, To::AtMost(8.0));
    let row = |seed| Constant(noise(&[5], seed));
    let variance = Constant(floats(&[5], |i| 0.25 + i as f32 / 8.0));
    let inputs = [
        Fed(noise(&[2, 3, 5, 5], 1)),
        row(2),
        row(3),
        row(4),
        variance,
    ];
    let op = BatchNorm {
        epsilon: 1e-3,
        channels_last: true,
    };
    let to = To::AtMost(2.0 * 2.0 + 1.0);
    check("BatchNorm", op, &inputs, &[2, 3, 5, 5], 7.0, to);
}

#[test]
fn half_convolutions() {
    for channels_last in [true, false] {
        let shape = |c, h, w| match channels_last {
            true => [2, h, w, c],
            false => [2, c, h, w],
        };
        let plain = conv(1, channels_last);
        let pointwise = Conv {
            padding: Padding::Explicit(vec![0; 4]),
            ..plain.clone()
        };
        let activated = Conv {
            activation: Activation::Relu,
            strides: vec![2, 2],
            ..plain.clone()
        };
        let depthwise = conv(5, channels_last);
        for (what, op, (c, m), kernel, (h, w)) in [
            ("Conv", plain, (5, 7), [5, 3, 3], (7, 9)),
            ("Conv 1x1", pointwise, (5, 7), [5, 1, 1], (7, 9)),
            ("Conv by 2 and Relu", activated, (3, 16), [3, 3, 3], (4, 5)),
            ("depthwise", depthwise, (5, 5), [1, 3, 3], (7, 9)),
        ] {
            let what = format!("{what} channels_last={channels_last}");
            let weights = [m, kernel[0], kernel[1], kernel[2]];
            let inputs = [
                Fed(noise(&shape(c, 7, 9), 1)),
                Constant(noise(&weights, 2)),
                Constant(noise(&[m], 3)),
            ];
            let roundings = sum_of(kernel.iter().product::<usize>() + 1);
            check(&what, op, &inputs, &shape(m, h, w), roundings, To::Terms);
        }
        let inputs = [
            Fed(noise(&shape(5, 7, 9), 1)),
            Constant(noise(&[5, 3, 3, 3], 2)),
            Constant(noise(&[3], 3)),
        ];
        let what = format!("ConvTranspose channels_last={channels_last}");
        let op = conv_transpose(2, channels_last);
        check(&what, op, &inputs, &shape(3, 13, 17), sum_of(46), To::Terms);
    }
}

/// PoCL's compiler ends in a fault at groups of three channels.
#[test]
fn half_groups() {
    for (c, m, side) in [(8, 8, 6), (16, 16, 8)] {
        let what = format!("groups {c} {m} {side}");
        let inputs = [
            Fed(noise(&[2, c, side, side], 1)),
            Constant(noise(&[m, c / 2, 3, 3], 2)),
            Constant(noise(&[m], 3)),
        ];
        let y = [2, m, side, side];
        check(&what, conv(2, false), &inputs, &y, sum_of(19), To::Terms);
    }
}

#[test]
fn half_products() {
    let (m, k, n) = (5, 33, 20);
    let a = || Fed(noise(&[m, k], 1));
    let plain = MatMul::default();
    let weights = [a(), Constant(noise(&[k, n], 2))];
    let to = To::Terms;
    check("weights", plain.clone(), &weights, &[m, n], sum_of(k), to);
    let computed = [a(), Fed(noise(&[k, n], 2))];
    check("computed", plain.clone(), &computed, &[m, n], sum_of(k), to);
    let gemm = Gemm {
        alpha: 1.0,
        beta: 1.0,
        transpose_a: false,
        transpose_b: true,
        activation: Activation::Relu,
    };
    let inputs = [a(), Constant(noise(&[n, k], 2)), Constant(noise(&[n], 3))];
    check("Gemm", gemm, &inputs, &[m, n], sum_of(k + 1), to);
    let stacks = [Fed(noise(&[2, 3, 5, 7], 1)), Fed(noise(&[2, 3, 7, 6], 2))];
    check("stack", plain, &stacks, &[2, 3, 5, 6], sum_of(7), to);
}

#[test]
fn half_windows() {
    for channels_last in [true, false] {
        let shape = |side| match channels_last {
            true => [2, side, side, 5],
            false => [2, 5, side, side],
        };
        let x = || [Fed(noise(&shape(7), 1))];
        let what = format!("of 3x3 channels_last={channels_last}");
        let max = max_pool(window(3, 2, 1), channels_last);
        check(&what, max, &x(), &shape(4), 0.0, To::Result);
        let average = AveragePool {
            window: window(3, 2, 1),
            count_include_pad: false,
            channels_last,
            activation: Default::default(),
        };
        check(&what, average, &x(), &shape(4), sum_of(9), To::Terms);
    }
    let mean = Reduce {
        kind: ReduceKind::Mean,
        keep_dims: true,
        noop_with_empty_axes: false,
    };
    let axes = Constant(Tensor::from_slice(&[2], &[1i64, 2]).unwrap());
    let inputs = [Fed(noise(&[2, 5, 7, 3], 1)), axes];
    check("mean", mean, &inputs, &[2, 1, 1, 3], sum_of(35), To::Terms);
    for (mode, coordinates) in RESIZES {
        let roundings = match mode {
            ResizeMode::Linear => INTERPOLATION,
            _ => 0.0,
        };
        let y = [1, 3, 10, 12];
        let inputs = resized(noise(&[1, 3, 5, 4], 1), &y);
        let what = format!("{mode:?} {coordinates:?}");
        let op = resize(mode, coordinates);
        check(&what, op, &inputs, &y, roundings, To::Terms);
    }
}

#[test]
fn half_movement() {
    let inputs = [Fed(noise(&[2, 3, 5], 1)), Fed(noise(&[2, 4, 5], 2))];
    check(
        "Concat",
        Concat { axis: 1 },
        &inputs,
        &[2, 7, 5],
        0.0,
        To::Result,
    );
    let perm = vec![0, 2, 3, 1];
    let x = [Fed(noise(&[2, 3, 5, 7], 1))];
    check(
        "Transpose",
        Transpose { perm },
        &x,
        &[2, 5, 7, 3],
        0.0,
        To::Result,
    );
}
