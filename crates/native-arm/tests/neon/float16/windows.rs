//! Pooling and resizing.

use kilim_core::Tensor;
use kilim_core::ops::{AveragePool, Reduce, ReduceKind, ResizeMode};

use super::{To, check, refused, sum_of};
use crate::common::Given::{Constant, Fed};
use crate::common::{RESIZES, max_pool, noise, resize, resized, window};

#[test]
fn pooling() {
    for channels_last in [true, false] {
        for (c, kernel, stride, pad, side, out) in [
            (5, 2, 2, 0, 6, 3),
            (8, 3, 2, 1, 7, 4),
            (19, 3, 1, 0, 6, 4),
            (5, 7, 1, 0, 7, 1),
        ] {
            let shape = |side| match channels_last {
                true => [2, side, side, c],
                false => [2, c, side, side],
            };
            let what = |name| {
                format!("{name} {kernel}x{kernel} by {stride} of {c} channels_last={channels_last}")
            };
            let x = || [Fed(noise(&shape(side), 1))];
            let max = max_pool(window(kernel, stride, pad), channels_last);
            match channels_last || kernel < 7 {
                true => check(&what("MaxPool"), max, &x(), &shape(out), 0.0, To::Result),
                false => refused(max, &x(), &shape(out), "NaN into a number"),
            }
            for count_include_pad in [false, true] {
                let average = AveragePool {
                    window: window(kernel, stride, pad),
                    count_include_pad,
                    channels_last,
                    activation: Default::default(),
                };
                let what = what("AveragePool");
                check(
                    &what,
                    average,
                    &x(),
                    &shape(out),
                    sum_of(kernel * kernel),
                    To::Terms,
                );
            }
        }
    }
    for (shape, axes, y) in [
        ([2, 5, 7, 3], [1i64, 2], [2, 1, 1, 3]),
        ([2, 3, 5, 7], [2, 3], [2, 3, 1, 1]),
    ] {
        let op = Reduce {
            kind: ReduceKind::Mean,
            keep_dims: true,
            noop_with_empty_axes: false,
        };
        let axes = Constant(Tensor::from_slice(&[2], &axes).unwrap());
        check(
            "mean",
            op,
            &[Fed(noise(&shape, 1)), axes],
            &y,
            sum_of(35),
            To::Terms,
        );
    }
}

/// Four elements by two weights each, which are rounded, too, and so is 1 less a weight.
const INTERPOLATION: f64 = 4.0 * 4.0;

#[test]
fn resizing() {
    for (mode, coordinates) in RESIZES {
        for (x, y) in [
            ([1, 3, 5, 4], [1, 3, 10, 12]),
            ([2, 5, 4, 3], [2, 10, 12, 3]),
            ([1, 8, 10, 3], [1, 5, 4, 3]),
            ([1, 5, 4, 16], [1, 7, 9, 16]),
        ] {
            let roundings = match mode {
                ResizeMode::Linear => INTERPOLATION,
                _ => 0.0,
            };
            let what = format!("{mode:?} {coordinates:?} {x:?} to {y:?}");
            check(
                &what,
                resize(mode, coordinates),
                &resized(noise(&x, 1), &y),
                &y,
                roundings,
                To::Terms,
            );
        }
    }
}
