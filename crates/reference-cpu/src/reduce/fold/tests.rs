use super::*;
use crate::testing::{run_as, run_f32};
use kilim_host::testing::{assert_close, noise, tensor};

const KINDS: [ReduceKind; 10] = [
    ReduceKind::Sum,
    ReduceKind::Mean,
    ReduceKind::Max,
    ReduceKind::Min,
    ReduceKind::Prod,
    ReduceKind::L1,
    ReduceKind::L2,
    ReduceKind::LogSum,
    ReduceKind::LogSumExp,
    ReduceKind::SumSquare,
];

fn op(kind: ReduceKind) -> Reduce {
    Reduce {
        kind,
        keep_dims: false,
        noop_with_empty_axes: false,
    }
}

fn naive(kind: ReduceKind, v: &[f64]) -> f64 {
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

#[test]
fn every_kind_over_any_axes() {
    let shape = [3, 5, 2, 11];
    let x: Vec<f32> = noise(330, 5).iter().map(|v| 1.0 + 0.05 * v).collect();
    let strides = contiguous_strides(&shape);
    for axes in [&[3i64][..], &[0], &[1, 2], &[0, 2], &[1, 3], &[0, 1, 2, 3]] {
        let kept: Vec<usize> = (0..4).filter(|&d| !axes.contains(&(d as i64))).collect();
        let out: Vec<usize> = kept.iter().map(|&d| shape[d]).collect();
        let read: Vec<isize> = kept.iter().map(|&d| strides[d]).collect();
        let gone: Vec<usize> = axes.iter().map(|&d| shape[d as usize]).collect();
        let over: Vec<isize> = axes.iter().map(|&d| strides[d as usize]).collect();
        for kind in KINDS {
            let mut want = Vec::new();
            let (kept, reduced) = (Walk::new(&out, [&read]), Walk::new(&gone, [&over]));
            for [base] in kept.offsets(0..kept.len()) {
                let line = reduced.offsets(0..reduced.len());
                let line = line.iter().map(|[r]| f64::from(x[(base + r) as usize]));
                want.push(naive(kind, &line.collect::<Vec<_>>()));
            }
            let y = run_f32(
                &op(kind),
                &[&tensor(&shape, &x), &tensor(&[axes.len()], axes)],
                &out,
            );
            assert_close(&y, &want);
        }
    }
}

#[test]
fn nothing_and_integers() {
    let none = tensor::<f32>(&[0, 2], &[]);
    let axis = tensor::<i64>(&[1], &[0]);
    let of = |kind| run_f32(&op(kind), &[&none, &axis], &[2]);
    assert_eq!(of(ReduceKind::Sum), [0.0; 2]);
    assert_eq!(of(ReduceKind::Prod), [1.0; 2]);
    assert_eq!(of(ReduceKind::Max), [f32::NEG_INFINITY; 2]);
    assert_eq!(of(ReduceKind::LogSumExp), [f32::NEG_INFINITY; 2]);
    let none = tensor::<i8>(&[0], &[]);
    assert_eq!(
        run_as::<i8>(&op(ReduceKind::Max), &[&none, &axis], &[]),
        [-128]
    );
    let x = tensor::<u8>(&[3], &[200, 100, 3]);
    assert_eq!(run_as::<u8>(&op(ReduceKind::Sum), &[&x, &axis], &[]), [47]);
    assert_eq!(
        run_as::<u8>(&op(ReduceKind::Mean), &[&x, &axis], &[]),
        [101]
    );
}

#[test]
fn long_sums_stay_accurate() {
    let x = vec![0.1f32; 1_000_003];
    let axis = tensor::<i64>(&[1], &[0]);
    let y = run_f32(
        &op(ReduceKind::Mean),
        &[&tensor(&[x.len()], &x), &axis],
        &[],
    );
    assert_close(&y, &[f64::from(0.1f32)]);
}
