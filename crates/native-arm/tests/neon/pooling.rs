//! Pooling. What is no number and what is infinite comes out as on `cpu`, or ACL is not asked.

use kilim_core::Tensor;
use kilim_core::ops::{AveragePool, Reduce, ReduceKind};

use crate::agreement::{agrees, check};
use crate::common::Given::{Constant, Fed};
use crate::common::{extremes, floats, max_pool, noise, window};

/// A picture of `c` channels and `side` rows and columns, and what a window leaves of it.
fn shapes(channels_last: bool, c: usize, side: usize, out: usize) -> ([usize; 4], [usize; 4]) {
    match channels_last {
        true => ([2, side, side, c], [2, out, out, c]),
        false => ([2, c, side, side], [2, c, out, out]),
    }
}

/// Pictures with one number that is none at each place of a window in turn, and some at the edges.
fn pictures(shape: &[usize]) -> Vec<(String, Tensor)> {
    let n: usize = shape.iter().product();
    let with = |odd: f32, at: usize| {
        let noise = noise(shape, 3).as_slice::<f32>().unwrap().to_vec();
        floats(shape, |i| if i % 11 == at { odd } else { noise[i] })
    };
    let mut all = vec![
        (
            "nothing but -inf".into(),
            floats(shape, |_| f32::NEG_INFINITY),
        ),
        ("nothing but NaN".into(), floats(shape, |_| f32::NAN)),
        (
            "zeros of both signs".into(),
            floats(shape, |i| if i % 2 == 0 { -0.0 } else { 0.0 }),
        ),
    ];
    for at in 0..11.min(n) {
        all.push((format!("NaN at {at}"), with(f32::NAN, at)));
    }
    for odd in [f32::INFINITY, f32::NEG_INFINITY] {
        all.push((format!("{odd}"), with(odd, 4)));
    }
    all
}

#[test]
fn odd_numbers_are_pooled_as_elsewhere() {
    let mut results = Vec::new();
    for channels_last in [true, false] {
        for channels in [1, 5, 8] {
            for (kernel, stride, pad, side, out) in [
                (2, 2, 0, 6, 3),
                (3, 2, 1, 7, 4),
                (3, 1, 0, 6, 4),
                (7, 1, 0, 7, 1),
            ] {
                let (x, y) = shapes(channels_last, channels, side, out);
                for (name, picture) in pictures(&x) {
                    let what =
                        |op: &str| format!("{op} {kernel}x{kernel} by {stride} {x:?} {name}");
                    let max = max_pool(window(kernel, stride, pad), channels_last);
                    results.push(agrees(&what("MaxPool"), max, &[Fed(picture.clone())], &y));
                    let average = AveragePool {
                        window: window(kernel, stride, pad),
                        count_include_pad: false,
                        channels_last,
                        activation: Default::default(),
                    };
                    results.push(agrees(&what("AveragePool"), average, &[Fed(picture)], &y));
                }
                let max = max_pool(window(kernel, stride, pad), channels_last);
                results.push(agrees("MaxPool of extremes", max, &[Fed(extremes(&x))], &y));
            }
        }
    }
    check(results);
}

#[test]
fn odd_numbers_are_averaged_as_elsewhere() {
    let mut results = Vec::new();
    for (shape, axes, y) in [
        ([2, 5, 5, 3], [1i64, 2], [2, 1, 1, 3]),
        ([2, 3, 5, 5], [2, 3], [2, 3, 1, 1]),
    ] {
        for (name, picture) in pictures(&shape) {
            let op = Reduce {
                kind: ReduceKind::Mean,
                keep_dims: true,
                noop_with_empty_axes: false,
            };
            let axes = Constant(Tensor::from_slice(&[2], &axes).unwrap());
            let what = format!("mean {shape:?} {name}");
            results.push(agrees(&what, op, &[Fed(picture), axes], &y));
        }
    }
    check(results);
}
