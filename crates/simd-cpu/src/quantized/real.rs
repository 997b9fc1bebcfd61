//! QLinearBinary: two quantised tensors combined in `float32`.

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Affine, BinaryKind, QLinearBinary};
use kilim_core::{DType, Result};

use super::pairwise::{self, Combine};
use super::steps::Steps;
use crate::isa::Simd;
use kilim_host::rules::required;
use kilim_host::{Build, Kernel};

pub fn build(op: &QLinearBinary, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let types = [required(node, 0)?.dtype, required(node, 1)?.dtype];
    pairwise::kernel(
        Real {
            op: op.clone(),
            signed: types.map(|d| d == DType::I8),
        },
        node,
    )
}

struct Real {
    op: QLinearBinary,
    signed: [bool; 2],
}

impl Combine for Real {
    type Number = f32;

    #[inline(always)]
    fn load(&self, which: usize, bytes: &[u8], at: usize, step: usize, to: &mut [f32]) {
        let affine = self.op.operands[which];
        load(affine, self.signed[which], &bytes[at..], step, to);
    }

    #[inline(always)]
    fn combine<S: Simd>(&self, s: S, a: &mut [f32], b: &[f32]) {
        combine(s, self.op.kind, self.op.offset, a, b);
    }

    #[inline(always)]
    fn store(&self, values: &mut [f32], bytes: &mut [u8], at: usize) {
        store(&self.op, values, &mut bytes[at..]);
    }
}

/// The real numbers of every `step`th byte.
#[inline(always)]
fn load(affine: Affine, signed: bool, from: &[u8], step: usize, to: &mut [f32]) {
    let Affine { scale, zero } = affine;
    let real = |b: u8| match signed {
        true => (f32::from(b as i8) - zero) * scale,
        false => (f32::from(b) - zero) * scale,
    };
    match (step, signed) {
        (0, _) => to.fill(real(from[0])),
        (1, true) => {
            for (to, &b) in to.iter_mut().zip(from) {
                *to = (f32::from(b as i8) - zero) * scale;
            }
        }
        (1, false) => {
            for (to, &b) in to.iter_mut().zip(from) {
                *to = (f32::from(b) - zero) * scale;
            }
        }
        _ => {
            let from = from.iter().step_by(step);
            to.iter_mut().zip(from).for_each(|(to, &b)| *to = real(b));
        }
    }
}

#[inline(always)]
fn combine<S: Simd>(s: S, kind: BinaryKind, offset: f32, a: &mut [f32], b: &[f32]) {
    let both = a.iter_mut().zip(b);
    match kind {
        BinaryKind::Add => both.for_each(|(a, &b)| *a += b + offset),
        BinaryKind::Sub => both.for_each(|(a, &b)| *a -= b + offset),
        BinaryKind::Mul => both.for_each(|(a, &b)| *a *= b + offset),
        _ => extremes(s, kind == BinaryKind::Max, offset, a, b),
    }
}

/// The larger, or the smaller, of each two.
#[inline(always)]
fn extremes<S: Simd>(s: S, larger: bool, offset: f32, a: &mut [f32], b: &[f32]) {
    let offset = s.splat(offset);
    for (a, b) in a.chunks_mut(S::LANES).zip(b.chunks(S::LANES)) {
        let n = a.len().min(b.len());
        // SAFETY: both have `n` elements, at least one and no more than a vector.
        unsafe {
            let x = s.load_part(a.as_ptr(), n);
            let y = s.add(s.load_part(b.as_ptr(), n), offset);
            let v = if larger { s.max(x, y) } else { s.min(x, y) };
            s.store_part(a.as_mut_ptr(), v, n);
        }
    }
}

#[inline(always)]
fn store(op: &QLinearBinary, values: &[f32], to: &mut [u8]) {
    let Affine { scale, zero } = op.result;
    let steps = Steps::new(zero as i32, op.range.map(|r| r as i32));
    for (to, &v) in to.iter_mut().zip(values) {
        *to = steps.nearest(v / scale) as u8;
    }
}
