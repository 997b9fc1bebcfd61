//! Convolutions and matrix products.

use kilim_core::ops::{Activation, Conv, Gemm, MatMul, Padding};

use super::{To, check, sum_of};
use crate::common::Given::{Constant, Fed};
use crate::common::{conv, conv_transpose, noise};

#[test]
fn convolutions() {
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
        let strided = Conv {
            strides: vec![2, 2],
            ..plain.clone()
        };
        let dilated = Conv {
            dilations: vec![2, 2],
            ..plain.clone()
        };
        let activated = Conv {
            activation: Activation::Relu,
            ..plain.clone()
        };
        for (what, op, kernel, (h, w)) in [
            ("Conv", plain, 3, (7, 9)),
            ("Conv 1x1", pointwise, 1, (7, 9)),
            ("Conv by 2", strided, 3, (4, 5)),
            ("Conv dilated", dilated, 3, (5, 7)),
            ("Conv and Relu", activated, 3, (7, 9)),
        ] {
            for (c, m) in [(5, 7), (3, 16), (1, 3)] {
                let what = format!("{what} channels_last={channels_last} {c} to {m}");
                let inputs = [
                    Fed(noise(&shape(c, 7, 9), 1)),
                    Constant(noise(&[m, c, kernel, kernel], 2)),
                    Constant(noise(&[m], 3)),
                ];
                let terms = c * kernel * kernel + 1;
                check(
                    &what,
                    op.clone(),
                    &inputs,
                    &shape(m, h, w),
                    sum_of(terms),
                    To::Terms,
                );
            }
        }
        for (stride, (h, w)) in [(1, (7, 9)), (2, (13, 17))] {
            let inputs = [
                Fed(noise(&shape(5, 7, 9), 1)),
                Constant(noise(&[5, 3, 3, 3], 2)),
                Constant(noise(&[3], 3)),
            ];
            let what = format!("ConvTranspose by {stride} channels_last={channels_last}");
            let op = conv_transpose(stride, channels_last);
            check(&what, op, &inputs, &shape(3, h, w), sum_of(46), To::Terms);
        }
    }
}

#[test]
fn depthwise_convolutions() {
    for channels_last in [true, false] {
        for (c, kernel, stride, (h, w)) in [
            (5, 3, 1, (7, 9)),
            (8, 3, 2, (4, 5)),
            (19, 5, 1, (7, 9)),
            (5, 5, 2, (4, 5)),
        ] {
            let shape = |h, w| match channels_last {
                true => [2, h, w, c],
                false => [2, c, h, w],
            };
            let op = Conv {
                strides: vec![stride; 2],
                padding: Padding::Explicit(vec![kernel / 2; 4]),
                ..conv(c, channels_last)
            };
            let inputs = [
                Fed(noise(&shape(7, 9), 1)),
                Constant(noise(&[c, 1, kernel, kernel], 2)),
                Constant(noise(&[c], 3)),
            ];
            let what = format!(
                "depthwise {kernel}x{kernel} by {stride} {c} channels_last={channels_last}"
            );
            check(
                &what,
                op,
                &inputs,
                &shape(h, w),
                sum_of(kernel * kernel + 1),
                To::Terms,
            );
        }
    }
}

#[test]
fn products() {
    for (m, k, n) in [(5, 33, 20), (1, 129, 10), (7, 16, 3), (64, 48, 33)] {
        let a = || Fed(noise(&[m, k], 1));
        let op = MatMul::default();
        let weights = [a(), Constant(noise(&[k, n], 2))];
        check(
            "weights",
            op.clone(),
            &weights,
            &[m, n],
            sum_of(k),
            To::Terms,
        );
        let computed = [a(), Fed(noise(&[k, n], 2))];
        check("computed", op, &computed, &[m, n], sum_of(k), To::Terms);
        let transposed = MatMul {
            transpose_b: true,
            alpha: Some(0.25),
            ..MatMul::default()
        };
        let computed = [a(), Fed(noise(&[n, k], 2))];
        check(
            "transposed",
            transposed,
            &computed,
            &[m, n],
            sum_of(k) + 1.0,
            To::Terms,
        );
        for (transpose_b, b) in [(true, [n, k]), (false, [k, n])] {
            let op = Gemm {
                alpha: 1.0,
                beta: 1.0,
                transpose_a: false,
                transpose_b,
                activation: Activation::Relu,
            };
            let inputs = [a(), Constant(noise(&b, 2)), Constant(noise(&[n], 3))];
            check("Gemm", op, &inputs, &[m, n], sum_of(k + 1), To::Terms);
        }
    }
    for (a, b, transpose_b) in [
        ([2, 3, 5, 7], [2, 3, 7, 6], false),
        ([2, 3, 5, 8], [2, 3, 9, 8], true),
    ] {
        let op = MatMul {
            transpose_b,
            ..MatMul::default()
        };
        let n = if transpose_b { b[2] } else { b[3] };
        let inputs = [Fed(noise(&a, 1)), Fed(noise(&b, 2))];
        check("stack", op, &inputs, &[2, 3, 5, n], sum_of(a[3]), To::Terms);
    }
}
