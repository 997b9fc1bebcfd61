//! Reductions, softmax and normalisations.

use std::sync::Arc;

use kilim::core::ops::{
    BatchNorm, InstanceNorm, LayerNorm, Operator, Reduce, ReduceKind, Softmax, SoftmaxKind,
};

use super::{Array, Case, Random, each_index, flat, ints};

/// Elements grouped by their index outside `axes`.
fn groups(x: &Array, axes: &[usize]) -> (Vec<usize>, Vec<Vec<f64>>) {
    let kept: Vec<usize> = x
        .shape
        .iter()
        .enumerate()
        .map(|(i, &d)| if axes.contains(&i) { 1 } else { d })
        .collect();
    let mut groups = vec![Vec::new(); kept.iter().product()];
    each_index(&x.shape, |index| {
        let own: Vec<usize> = index
            .iter()
            .enumerate()
            .map(|(i, &v)| if axes.contains(&i) { 0 } else { v })
            .collect();
        groups[flat(&kept, &own)].push(f64::from(x.data[flat(&x.shape, index)]));
    });
    (kept, groups)
}

fn reduce(kind: ReduceKind, v: &[f64]) -> f64 {
    let sum = |f: fn(f64) -> f64| v.iter().map(|&x| f(x)).sum::<f64>();
    match kind {
        ReduceKind::Sum => sum(|x| x),
        ReduceKind::Mean => sum(|x| x) / v.len() as f64,
        ReduceKind::Max => v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ReduceKind::Min => v.iter().copied().fold(f64::INFINITY, f64::min),
        ReduceKind::Prod => v.iter().product(),
        ReduceKind::L1 => sum(f64::abs),
        ReduceKind::L2 => sum(|x| x * x).sqrt(),
        ReduceKind::LogSum => sum(|x| x).ln(),
        ReduceKind::LogSumExp => sum(f64::exp).ln(),
        ReduceKind::SumSquare => sum(|x| x * x),
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(3);
    let mut cases = infinite_scales();
    let kinds = [
        ReduceKind::Sum,
        ReduceKind::Mean,
        ReduceKind::Max,
        ReduceKind::Min,
        ReduceKind::Prod,
        ReduceKind::L1,
        ReduceKind::L2,
        ReduceKind::LogSumExp,
        ReduceKind::SumSquare,
    ];
    let shapes: [(&[usize], &[i64]); 7] = [
        (&[2, 3, 5], &[-1]),
        (&[2, 3, 5], &[0]),
        (&[2, 3, 5], &[1, 2]),
        (&[3, 4, 5, 6], &[1, -1]),
        (&[2, 7, 9, 19], &[1, 2]),
        (&[4, 300], &[1]),
        (&[6], &[0]),
    ];
    for kind in kinds {
        for (i, (shape, axes)) in shapes.into_iter().enumerate() {
            let mut x = random.array(shape);
            if kind == ReduceKind::Prod {
                // A long product of numbers around one stays a number.
                x.data.iter_mut().for_each(|v| *v = 1.0 + *v / 100.0);
            }
            let own: Vec<usize> = axes
                .iter()
                .map(|&a| a.rem_euclid(shape.len() as i64) as usize)
                .collect();
            let (kept, lists) = groups(&x, &own);
            let keep_dims = i % 2 == 0;
            let op = Reduce {
                kind,
                keep_dims,
                noop_with_empty_axes: false,
            };
            let dims = match keep_dims {
                true => kept,
                false => (0..shape.len())
                    .filter(|i| !own.contains(i))
                    .map(|i| shape[i])
                    .collect(),
            };
            cases.push(Case {
                name: format!("{} {shape:?} {axes:?}", op.name()),
                op: Arc::new(op),
                inputs: vec![x.fed(), ints(axes)],
                want: vec![(dims, lists.iter().map(|v| reduce(kind, v)).collect())],
                tolerance: 2e-6,
            });
        }
    }
    let shapes: [(&[usize], i64); 6] = [
        (&[1, 10], -1),
        (&[3, 1001], 1),
        (&[2, 3, 5], 0),
        (&[2, 3, 5, 7], 2),
        (&[2, 0, 3], -1),
        (&[2, 4, 6, 1], 1),
    ];
    for (shape, axis) in shapes {
        for kind in [SoftmaxKind::Softmax, SoftmaxKind::LogSoftmax] {
            let mut x = random.array(shape);
            x.data.iter_mut().for_each(|v| *v *= 40.0);
            let own = [axis.rem_euclid(shape.len() as i64) as usize];
            let (kept, lists) = groups(&x, &own);
            let mut want = Vec::new();
            each_index(shape, |index| {
                let mut at = index.to_vec();
                at[own[0]] = 0;
                let list = &lists[flat(&kept, &at)];
                let top = reduce(ReduceKind::Max, list);
                let sum: f64 = list.iter().map(|v| (v - top).exp()).sum();
                let v = f64::from(x.data[flat(shape, index)]) - top;
                want.push(match kind {
                    SoftmaxKind::LogSoftmax => v - sum.ln(),
                    _ => v.exp() / sum,
                });
            });
            let op = Softmax {
                kind,
                axis,
                beta: 1.0,
            };
            cases.push(Case {
                name: format!("{} {shape:?} axis {axis}", op.name()),
                op: Arc::new(op),
                inputs: vec![x.fed()],
                want: vec![(shape.to_vec(), want)],
                tolerance: 3e-6,
            });
        }
    }
    for shape in [&[2, 3, 5][..], &[4, 384], &[1, 1], &[3, 0, 8]] {
        let x = random.array(shape);
        let n = shape[shape.len() - 1];
        let (scale, bias) = (random.array(&[n]), random.array(&[n]));
        let mut want = Vec::new();
        for row in x.data.chunks(n.max(1)) {
            let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
            let square = row
                .iter()
                .map(|&v| (f64::from(v) - mean).powi(2))
                .sum::<f64>()
                / n as f64;
            for (i, &v) in row.iter().enumerate() {
                let normal = (f64::from(v) - mean) / (square + 1e-5).sqrt();
                want.push(normal * f64::from(scale.data[i]) + f64::from(bias.data[i]));
            }
        }
        cases.push(Case {
            name: format!("LayerNormalization {shape:?}"),
            op: Arc::new(LayerNorm {
                axis: -1,
                epsilon: 1e-5,
            }),
            inputs: vec![x.fed(), scale.constant(), bias.constant()],
            want: vec![(shape.to_vec(), want)],
            tolerance: 1e-5,
        });
    }
    cases
}

/// Scales that are infinite, as those of a format where infinity stands for what it does not hold.
fn infinite_scales() -> Vec<Case> {
    let scale = [2.0, f32::INFINITY, f32::NEG_INFINITY];
    let x = [1.0, 3.0, -2.0, 2.5, 1.5, -0.5];
    let vector = |data: &[f32]| Array {
        shape: vec![data.len()],
        data: data.to_vec(),
    };
    let data = |shape: &[usize]| Array {
        shape: shape.to_vec(),
        data: x.to_vec(),
    };
    let (mean, variance) = (vec![0.5f32, 1.0, -1.0], vec![1.0f32, 4.0, 0.25]);
    let batch = |name: &str, channels_last, shape: &[usize]| {
        let channel = |i: usize| if channels_last { i % 3 } else { i / 2 };
        let want = x.iter().enumerate().map(|(i, &x)| {
            let c = channel(i);
            f64::from(x - mean[c]) / f64::from(variance[c]).sqrt() * f64::from(scale[c]) + 0.25
        });
        Case {
            name: name.to_string(),
            op: Arc::new(BatchNorm {
                epsilon: 0.0,
                channels_last,
            }),
            inputs: vec![
                data(shape).fed(),
                vector(&scale).constant(),
                vector(&[0.25; 3]).constant(),
                vector(&mean).constant(),
                vector(&variance).constant(),
            ],
            want: vec![(shape.to_vec(), want.collect())],
            tolerance: 1e-6,
        }
    };
    let instance = {
        let planes = x.chunks_exact(2).zip(scale);
        let want = planes.flat_map(|(plane, scale)| {
            let mean = (plane[0] + plane[1]) / 2.0;
            let off = [plane[0] - mean, plane[1] - mean].map(f64::from);
            off.map(|v| v / (v * v).sqrt() * f64::from(scale) + 0.25)
        });
        Case {
            name: "InstanceNormalization with infinite scales".to_string(),
            op: Arc::new(InstanceNorm { epsilon: 0.0 }),
            inputs: vec![
                data(&[1, 3, 2]).fed(),
                vector(&scale).fed(),
                vector(&[0.25; 3]).fed(),
            ],
            want: vec![(vec![1, 3, 2], want.collect())],
            tolerance: 1e-6,
        }
    };
    vec![
        batch("BatchNormalization with infinite scales", false, &[1, 3, 2]),
        batch(
            "BatchNormalization with infinite scales, last",
            true,
            &[2, 3],
        ),
        instance,
    ]
}
