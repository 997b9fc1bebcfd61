//! Two tensors combined, and numbers quantised, scaled and looked up.

use std::sync::Arc;

use kilim::DType;
use kilim::core::fixed::Factor;
use kilim::core::ops::{
    Affine, BinaryKind, Combination, DequantizeLinear, QLinearBinary, QuantizeLinear,
    QuantizedBinary, Requantize, TableLookup,
};

use super::super::{Case, Random, each_index, flat};
use super::{Bytes, range, scale};

/// Combines two tensors of shapes that broadcast, by index.
fn joined(a: &Bytes, b: &Bytes, f: impl Fn(i64, i64) -> f64) -> (Vec<usize>, Vec<f64>) {
    let rank = a.shape.len().max(b.shape.len());
    let dim = |s: &[usize], d: usize| match d.checked_sub(rank - s.len()) {
        Some(d) => s[d],
        None => 1,
    };
    let shape: Vec<usize> = (0..rank)
        .map(|d| dim(&a.shape, d).max(dim(&b.shape, d)))
        .collect();
    let at = |s: &[usize], index: &[usize]| {
        let own: Vec<usize> = (rank - s.len()..rank)
            .map(|d| if dim(s, d) == 1 { 0 } else { index[d] })
            .collect();
        flat(s, &own)
    };
    let mut out = Vec::new();
    each_index(&shape, |i| {
        out.push(f(a.data[at(&a.shape, i)], b.data[at(&b.shape, i)]));
    });
    (shape, out)
}

pub(super) fn pairs(random: &mut Random) -> Vec<Case> {
    use BinaryKind::{Add, Max, Min, Mul, Sub};
    let shapes: [[&[usize]; 2]; 6] = [
        [&[5], &[5]],
        [&[2, 3, 7], &[7]],
        [&[2, 3, 7], &[3, 1]],
        [&[2, 1, 5], &[3, 1]],
        [&[], &[3]],
        [&[1031], &[1031]],
    ];
    let mut cases = Vec::new();
    for kind in [Add, Sub, Mul, Max, Min] {
        for [left, right] in shapes {
            let (ta, tb, output) = (random.dtype(), random.dtype(), random.dtype());
            let (a, b) = (random.bytes(ta, left), random.bytes(tb, right));
            let mut affine = |dtype: DType, size: f32| Affine {
                scale: random.scales(1, size)[0],
                zero: random.bytes(dtype, &[]).data[0] as f32,
            };
            let operands = [affine(ta, 0.02), affine(tb, 0.03)];
            let result = affine(output, 0.03);
            let (low, high) = range(output);
            let op = QLinearBinary {
                kind,
                operands,
                offset: 0.0,
                result,
                range: [low as f32 + 9.0, high as f32],
                output,
            };
            let real = |v: i64, of: Affine| (v as f32 - of.zero) * of.scale;
            let want = joined(&a, &b, |a, b| {
                let (a, b) = (real(a, operands[0]), real(b, operands[1]));
                let value = match kind {
                    Add => a + b,
                    Sub => a - b,
                    Mul => a * b,
                    Max => a.max(b),
                    _ => a.min(b),
                };
                let step = (value / result.scale).round_ties_even() + result.zero;
                f64::from(step.clamp(op.range[0], op.range[1]))
            });
            cases.push(Case {
                name: format!("QLinearBinary {kind:?} {left:?} {right:?}"),
                op: Arc::new(op),
                inputs: vec![a.fed(), b.fed()],
                want: vec![want],
                tolerance: 0.0,
            });
        }
    }
    for [left, right] in shapes {
        let (a, b) = (
            random.bytes(DType::I8, left),
            random.bytes(DType::I8, right),
        );
        let factor = |real: f64| Factor::new(real).expect("a factor");
        let factors = [factor(0.73), factor(0.41)];
        let op = QuantizedBinary {
            zero_points: [5, -7],
            combination: Combination::Sum {
                left_shift: 20,
                factors,
            },
            result: Requantize {
                factors: vec![factor(1.3 / f64::from(1 << 20))],
                zero_point: -4,
                range: [-128, 127],
                output: DType::I8,
            },
        };
        let want = joined(&a, &b, |a, b| {
            let sum =
                factors[0].apply((a as i32 - 5) << 20) + factors[1].apply((b as i32 + 7) << 20);
            f64::from(op.result.apply(0, sum))
        });
        cases.push(Case {
            name: format!("QuantizedBinary {left:?} {right:?}"),
            op: Arc::new(op),
            inputs: vec![a.fed(), b.fed()],
            want: vec![want],
            tolerance: 0.0,
        });
    }
    cases
}

pub(super) fn conversions(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for shape in [&[7][..], &[0, 3], &[2, 3, 1031], &[1, 5, 4]] {
        let channels = shape.get(1).copied().filter(|&c| c > 0).unwrap_or(1);
        for per_axis in [false, true] {
            let count = if per_axis && shape.len() > 2 {
                channels
            } else {
                1
            };
            let inner: usize = shape.iter().skip(2).product();
            let dims = if count > 1 { vec![count] } else { vec![] };
            let dtype = random.dtype();
            let (scales, zeros) = (random.scales(count, 0.02), random.bytes(dtype, &dims));
            let of = |i: usize| if count > 1 { i / inner % count } else { 0 };
            let mut x = random.array(shape);
            x.data.iter_mut().for_each(|v| *v *= 4.0);
            let (low, high) = range(dtype);
            let quantised = |(i, v): (usize, &f32)| {
                let step = (v / scales[of(i)]).round_ties_even() + zeros.data[of(i)] as f32;
                f64::from(step.clamp(low as f32, high as f32))
            };
            cases.push(Case {
                name: format!("QuantizeLinear {shape:?} {count}"),
                op: Arc::new(QuantizeLinear {
                    axis: 1,
                    block: 0,
                    output: None,
                }),
                inputs: vec![x.fed(), scale(&scales), zeros.constant()],
                want: vec![(
                    shape.to_vec(),
                    x.data.iter().enumerate().map(quantised).collect(),
                )],
                tolerance: 0.0,
            });
            let bytes = random.bytes(dtype, shape);
            let real =
                |(i, &v): (usize, &i64)| f64::from((v - zeros.data[of(i)]) as f32 * scales[of(i)]);
            cases.push(Case {
                name: format!("DequantizeLinear {shape:?} {count}"),
                op: Arc::new(DequantizeLinear { axis: 1, block: 0 }),
                inputs: vec![bytes.fed(), scale(&scales), zeros.constant()],
                want: vec![(
                    shape.to_vec(),
                    bytes.data.iter().enumerate().map(real).collect(),
                )],
                tolerance: 0.0,
            });
            let table = random.bytes(dtype, &[256]);
            let looked_up = |&v: &i64| table.data[usize::from(v as u8)] as f64;
            cases.push(Case {
                name: format!("TableLookup {shape:?} {dtype}"),
                op: Arc::new(TableLookup::default()),
                inputs: vec![bytes.fed(), table.constant()],
                want: vec![(shape.to_vec(), bytes.data.iter().map(looked_up).collect())],
                tolerance: 0.0,
            });
        }
    }
    cases
}
