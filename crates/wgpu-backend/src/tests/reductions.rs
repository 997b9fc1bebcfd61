use kilim_core::ops::{
    Activation, ArgReduce, AveragePool, BatchNorm, Cumulative, GroupNorm, InstanceNorm, LayerNorm,
    Lrn, MaxPool, Padding, Reduce, ReduceKind, RmsNorm, Softmax, SoftmaxKind, Window,
};
use kilim_core::{DType, Tensor};

use super::harness::*;

fn fed_random(shape: &[usize]) -> Given {
    Given::Fed(random(shape, 1))
}

#[test]
fn reductions() {
    if gpu().is_none() {
        return;
    }
    use ReduceKind::*;
    for kind in [
        Sum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare,
    ] {
        let cases: [(&[usize], &[i64]); 7] = [
            (&[2, 3, 4], &[1]),
            (&[2, 3, 4], &[0, 2]),
            (&[3, 100], &[-1]),
            (&[2, 70, 3], &[1]),
            (&[3, 5, 7, 2], &[1, 2]),
            (&[200], &[0]),
            (&[3, 1], &[1]),
        ];
        for (shape, axes) in cases {
            // Positive, so that every logarithm is defined.
            let x: Vec<f32> = random(shape, 2)
                .as_slice::<f32>()
                .unwrap()
                .iter()
                .map(|v| v + 1.5)
                .collect();
            for keep_dims in [false, true] {
                let op = Reduce {
                    kind,
                    keep_dims,
                    noop_with_empty_axes: false,
                };
                let x = Given::Fed(f32s(shape, &x));
                agree(op, &[x, i64s(axes)], 1, 1e-5);
            }
        }
    }
    let op = Reduce {
        kind: Sum,
        keep_dims: false,
        noop_with_empty_axes: false,
    };
    agree(op.clone(), &[fed_random(&[2, 0]), i64s(&[1])], 1, 0.0);
    let ints = Tensor::from_slice(&[2, 3], &[1i32, -5, 3, 9, 2, 2]).unwrap();
    agree(op.clone(), &[Given::Fed(ints)], 1, 0.0);
    // Sums carry into the high words, of both signs; a thread and a workgroup each.
    for size in [5i64, 70] {
        let longs: Vec<i64> = (0..3 * size).map(|i| (i - size) * 0x6000_0001).collect();
        let longs = Given::Fed(Tensor::from_slice(&[3, size as usize], &longs).unwrap());
        agree(op.clone(), &[longs, i64s(&[1])], 1, 0.0);
    }
    let longs = Given::Fed(Tensor::zeros(DType::I64, &[2]).unwrap());
    let op = Reduce { kind: Max, ..op };
    let spec = stage(std::sync::Arc::new(op), &[longs], &[(DType::I64, vec![])]);
    assert!(supports(&spec).is_err());
}

#[test]
fn places_of_extremes() {
    if gpu().is_none() {
        return;
    }
    for shape in [[3, 5, 4], [2, 100, 1], [1, 1, 70]] {
        // Few values, so that there are equals.
        let coarse: Vec<f32> = random(&shape, 3)
            .as_slice::<f32>()
            .unwrap()
            .iter()
            .map(|v| (v * 3.0).round())
            .collect();
        for (max, select_last) in [(true, false), (true, true), (false, false), (false, true)] {
            for axis in [0, 1, 2] {
                let op = ArgReduce {
                    max,
                    axis,
                    keep_dims: axis == 1,
                    select_last,
                    output: DType::I64,
                };
                agree(op, &[Given::Fed(f32s(&shape, &coarse))], 1, 0.0);
            }
        }
    }
}

#[test]
fn softmaxes_and_running_sums() {
    if gpu().is_none() {
        return;
    }
    for kind in [
        SoftmaxKind::Softmax,
        SoftmaxKind::LogSoftmax,
        SoftmaxKind::Hardmax,
    ] {
        for (shape, axis) in [
            (vec![3, 10], -1),
            (vec![3, 100], 1),
            (vec![2, 5, 3], 1),
            (vec![2, 90, 3], 1),
            (vec![4], 0),
        ] {
            let op = Softmax {
                kind,
                axis,
                beta: 2.0,
            };
            agree(op, &[fed_random(&shape)], 1, 1e-5);
        }
    }
    for (product, exclusive, reverse) in [
        (false, false, false),
        (false, true, false),
        (false, false, true),
        (true, true, true),
    ] {
        let op = Cumulative {
            product,
            exclusive,
            reverse,
        };
        let axis = Given::Constant(Tensor::scalar(1i64).unwrap());
        agree(op, &[fed_random(&[2, 5, 3]), axis], 1, 1e-6);
    }
}

#[test]
fn normalisations() {
    if gpu().is_none() {
        return;
    }
    let vector = |n: usize, seed| Given::Constant(random(&[n], seed));
    let epsilon = 1e-3;
    for shape in [[2, 3, 40], [1, 5, 7]] {
        let n = shape[2];
        let x = fed_random(&shape);
        let op = LayerNorm { axis: -1, epsilon };
        agree(
            op.clone(),
            &[x.clone(), vector(n, 2), vector(n, 3)],
            1,
            1e-5,
        );
        agree(op, &[x.clone(), vector(n, 2)], 1, 1e-5);
        agree(
            RmsNorm { axis: -1, epsilon },
            &[x.clone(), vector(n, 2)],
            1,
            1e-5,
        );
        let c = shape[1];
        agree(
            InstanceNorm { epsilon },
            &[x, vector(c, 2), vector(c, 3)],
            1,
            1e-5,
        );
    }
    let x = fed_random(&[2, 6, 3, 5]);
    agree(
        GroupNorm { groups: 3, epsilon },
        &[x.clone(), vector(6, 2), vector(6, 3)],
        1,
        1e-5,
    );
    let variance = Given::Constant(f32s(&[6], &[0.5, 1.0, 2.0, 0.1, 3.0, 0.7]));
    agree(
        BatchNorm {
            epsilon,
            channels_last: false,
        },
        &[
            x.clone(),
            vector(6, 2),
            vector(6, 3),
            vector(6, 4),
            variance,
        ],
        1,
        1e-5,
    );
    for size in [3, 4] {
        let op = Lrn {
            alpha: 0.5,
            beta: 0.75,
            bias: 1.0,
            size,
            channels_last: false,
        };
        agree(op, std::slice::from_ref(&x), 1, 1e-5);
    }
}

fn window(kernel: &[usize], strides: &[usize], padding: Padding, ceil_mode: bool) -> Window {
    Window {
        kernel: kernel.to_vec(),
        strides: strides.to_vec(),
        dilations: vec![],
        padding,
        ceil_mode,
    }
}

#[test]
fn pools() {
    if gpu().is_none() {
        return;
    }
    let windows = [
        window(&[3, 2], &[2, 1], Padding::Explicit(vec![1, 0, 1, 1]), false),
        window(&[2, 2], &[2, 2], Padding::SameUpper, false),
        window(&[3, 3], &[2, 2], Padding::Valid, true),
        Window {
            dilations: vec![2, 1],
            ..window(&[2, 3], &[1, 2], Padding::Valid, false)
        },
    ];
    for window in windows {
        for channels_last in [false, true] {
            let x = if channels_last {
                fed_random(&[2, 7, 6, 3])
            } else {
                fed_random(&[2, 3, 7, 6])
            };
            let max = MaxPool {
                window: window.clone(),
                column_major: false,
                channels_last,
            };
            agree(max, std::slice::from_ref(&x), 1, 0.0);
            for count_include_pad in [false, true] {
                let op = AveragePool {
                    window: window.clone(),
                    count_include_pad,
                    channels_last,
                    activation: Activation::Relu,
                };
                agree(op, std::slice::from_ref(&x), 1, 1e-6);
            }
        }
    }
    let line = MaxPool {
        window: window(&[3], &[2], Padding::Valid, false),
        column_major: false,
        channels_last: false,
    };
    agree(line, &[fed_random(&[1, 2, 9])], 1, 0.0);
}
