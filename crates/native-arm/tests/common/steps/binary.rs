//! Sums, differences and products of two tensors, the larger and the smaller.

use kilim_core::fixed::Factor;
use kilim_core::ops::{BinaryKind, Combination, QLinearBinary, QuantizedBinary};
use kilim_core::{DType, Tensor};
use kilim_native_arm::AclBackend;

use super::{BYTES, Checks, Extent, affine, limits, requantize, scales};
use crate::common::Given::{self, Constant, Fed};
use crate::common::of_type;
use crate::common::real::{self, Quanta};

/// Shapes that broadcast, and which of them is constant.
const SHAPES: [([usize; 3], [usize; 3], bool); 4] = [
    ([2, 5, 51], [2, 5, 51], false),
    ([2, 5, 64], [1, 1, 64], true),
    ([3, 7, 9], [1, 1, 1], true),
    ([1, 16, 16], [1, 16, 16], false),
];

fn two(dtype: DType, a: &[usize], b: &[usize], constant: bool) -> [Given; 2] {
    let second = of_type(dtype, b, 91);
    let second = match constant {
        true => Constant(second),
        false => Fed(second),
    };
    [Fed(of_type(dtype, a, 37)), second]
}

fn apply(kind: BinaryKind, a: f64, b: f64) -> f64 {
    match kind {
        BinaryKind::Add => a + b,
        BinaryKind::Sub => a - b,
        BinaryKind::Mul => a * b,
        BinaryKind::Max => a.max(b),
        _ => a.min(b),
    }
}

/// Both tensors as real numbers, combined, in steps of the result.
fn combined(
    kind: BinaryKind,
    [qa, qb, qy]: [Quanta; 3],
    y: &[usize],
    given: &[Tensor],
) -> Vec<f64> {
    let b = real::broadcast(&qb.real(&given[1]), given[1].shape(), y);
    let pairs = qa.real(&given[0]).into_iter().zip(b);
    pairs.map(|(a, b)| qy.steps(apply(kind, a, b))).collect()
}

pub fn of_two(acl: &AclBackend, kind: BinaryKind, extent: Extent) {
    let mut checks = Checks::on(acl);
    for &dtype in extent.of(&BYTES) {
        for &[qa, qb, mut qy] in extent.of(&scales(dtype)) {
            if kind == BinaryKind::Mul {
                qy.scale *= 1.5;
            }
            for &(a, b, constant) in extent.of(&SHAPES) {
                let inputs = two(dtype, &a, &b, constant);
                let real = |given: &[Tensor]| combined(kind, [qa, qb, qy], &a, given);
                let [least, most] = limits(dtype);
                let name = format!("{kind:?} of {dtype} {a:?} {b:?} zero {}", qy.zero);
                for range in [[least, most], [least + 20.0, most - 30.0]] {
                    let op = QLinearBinary {
                        kind,
                        operands: [affine(qa), affine(qb)],
                        offset: 0.0,
                        result: affine(qy),
                        range: range.map(|v| v as f32),
                        output: dtype,
                    };
                    checks.clamped(&name, op, &inputs, (dtype, &a), range, real);
                }
                if let Some((op, range)) = fixed(kind, dtype, [qa, qb, qy]) {
                    let name = format!("{name}, fixed");
                    checks.clamped(&name, op, &inputs, (dtype, &a), range, real);
                }
            }
        }
    }
    checks.finish();
}

/// TFLite's operator for `kind`, with its range; `None` where TFLite has none.
fn fixed(
    kind: BinaryKind,
    dtype: DType,
    [a, b, y]: [Quanta; 3],
) -> Option<(QuantizedBinary, [f64; 2])> {
    const LEFT_SHIFT: u32 = 20;
    let common = 2.0 * a.scale.max(b.scale);
    let factors = [a, b].map(|q| Factor::new(q.scale / common).unwrap());
    let (combination, factor) = match kind {
        BinaryKind::Add | BinaryKind::Sub => {
            let result = common / (y.scale * f64::from(1 << LEFT_SHIFT));
            let left_shift = LEFT_SHIFT;
            let terms = match kind {
                BinaryKind::Add => Combination::Sum {
                    left_shift,
                    factors,
                },
                _ => Combination::Difference {
                    left_shift,
                    factors,
                },
            };
            (terms, result)
        }
        BinaryKind::Mul => (Combination::Product, a.scale * b.scale / y.scale),
        _ => return None,
    };
    let range = limits(dtype);
    let op = QuantizedBinary {
        zero_points: [a.zero, b.zero],
        combination,
        result: requantize(&[factor], y.zero, range, dtype),
    };
    Some((op, range))
}
