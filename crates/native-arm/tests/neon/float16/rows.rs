//! Softmax and batch normalisation.

use kilim_core::ops::{BatchNorm, Softmax, SoftmaxKind};

use super::{To, check, sum_of};
use crate::common::Given::{Constant, Fed};
use crate::common::{floats, noise};

#[test]
fn softmax() {
    for (shape, axis) in [
        ([3, 7, 5], 0),
        ([3, 7, 5], 1),
        ([3, 7, 5], 2),
        ([2, 3, 37], 2),
    ] {
        let op = |kind| Softmax {
            kind,
            axis,
            beta: 1.0,
        };
        let x = || [Fed(floats(&shape, |i| (i * 37 % 101) as f32 / 25.0 - 2.0))];
        // What is exponentiated is a difference of at most 4, whose rounding is as much of the result; then come the
        // exponential itself, the sum and the division.
        let roundings = 4.0 + 2.0 + sum_of(shape[axis as usize]);
        let what = format!("Softmax {shape:?} along {axis}");
        check(
            &what,
            op(SoftmaxKind::Softmax),
            &x(),
            &shape,
            roundings,
            To::Result,
        );
        if axis == 2 {
            let roundings = sum_of(shape[2]) + 4.0;
            let what = format!("LogSoftmax {shape:?}");
            check(
                &what,
                op(SoftmaxKind::LogSoftmax),
                &x(),
                &shape,
                roundings,
                To::AtMost(8.0),
            );
        }
    }
}

#[test]
fn batch_normalisation() {
    for channels_last in [true, false] {
        for c in [5, 16] {
            let shape = match channels_last {
                true => [2, 3, 5, c],
                false => [2, c, 3, 5],
            };
            let row = |seed| Constant(noise(&[c], seed));
            let variance = Constant(floats(&[c], |i| 0.25 + i as f32 / 8.0));
            let inputs = [Fed(noise(&shape, 1)), row(2), row(3), row(4), variance];
            let op = BatchNorm {
                epsilon: 1e-3,
                channels_last,
            };
            // Sum and root, its inverse, difference, two products, sum; twice the deviation of 0.5, and 1.
            let what = format!("BatchNorm {shape:?}");
            check(&what, op, &inputs, &shape, 7.0, To::AtMost(2.0 * 2.0 + 1.0));
        }
    }
}
