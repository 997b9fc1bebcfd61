//! QLinearBinary: two quantised tensors combined in `float32`.

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Affine, BinaryKind, QLinearBinary};
use kilim_core::{DType, Result};

use crate::isa::{Isa, Simd, Task};
use kilim_reference_cpu::common::rules::required;
use kilim_reference_cpu::common::{BLOCK, Walk, broadcast_strides};
use kilim_reference_cpu::frame::{Build, Io, Kernel};

pub fn build(op: &QLinearBinary, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (a, b) = (required(node, 0)?, required(node, 1)?);
    let shape = &node.outputs[0].shape;
    let strides = [
        broadcast_strides(&a.shape, shape),
        broadcast_strides(&b.shape, shape),
    ];
    Ok(Box::new(Combine {
        op: op.clone(),
        signed: [a.dtype, b.dtype].map(|d| d == DType::I8),
        walk: Walk::new(shape, [&strides[0], &strides[1]]),
        isa: Isa::best(),
    }))
}

struct Combine {
    op: QLinearBinary,
    signed: [bool; 2],
    walk: Walk<2>,
    isa: Isa,
}

impl Kernel for Combine {
    fn run(&self, io: &mut Io) -> Result<()> {
        self.isa.dispatch(Rows {
            kernel: self,
            inputs: [io.input_bytes(0), io.input_bytes(1)],
            output: io.output_bytes(0),
        });
        Ok(())
    }
}

struct Rows<'a> {
    kernel: &'a Combine,
    inputs: [&'a [u8]; 2],
    output: &'a mut [u8],
}

impl Task for Rows<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Combine {
            op, signed, walk, ..
        } = self.kernel;
        let (n, steps) = walk.row();
        let (mut a, mut b) = ([0f32; BLOCK], [0f32; BLOCK]);
        let mut row = 0;
        walk.rows(|at| {
            for first in (0..n).step_by(BLOCK) {
                let count = BLOCK.min(n - first);
                for (t, block) in [&mut a, &mut b].into_iter().enumerate() {
                    let (block, step) = (&mut block[..count], steps[t] as usize);
                    let from = &self.inputs[t][at[t] as usize + first * step..];
                    load(op.operands[t], signed[t], from, step, block);
                }
                let (a, b) = (&mut a[..count], &b[..count]);
                combine(op.kind, op.offset, a, b);
                store(op, a, &mut self.output[row + first..][..count]);
            }
            row += n;
        });
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
fn combine(kind: BinaryKind, offset: f32, a: &mut [f32], b: &[f32]) {
    let both = a.iter_mut().zip(b);
    match kind {
        BinaryKind::Add => both.for_each(|(a, &b)| *a += b + offset),
        BinaryKind::Sub => both.for_each(|(a, &b)| *a -= b + offset),
        BinaryKind::Mul => both.for_each(|(a, &b)| *a *= b + offset),
        BinaryKind::Max => both.for_each(|(a, &b)| *a = a.max(b + offset)),
        _ => both.for_each(|(a, &b)| *a = a.min(b + offset)),
    }
}

#[inline(always)]
fn store(op: &QLinearBinary, values: &[f32], to: &mut [u8]) {
    // Adding and taking off 1.5 * 2^23 rounds small numbers to the nearest, ties to even.
    const ROUND: f32 = 12_582_912.0;
    let Affine { scale, zero } = op.result;
    let [low, high] = op.range.map(|r| r - zero);
    for (to, &v) in to.iter_mut().zip(values) {
        let v = v / scale;
        let v = if v < low { low } else { v };
        let v = if v > high { high } else { v };
        *to = ((v + ROUND - ROUND) + zero) as i32 as u8;
    }
}
