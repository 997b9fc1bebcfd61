//! The left matrix as signed bytes.

use kilim_core::Result;
use kilim_host::{CpuRun, by};

use super::super::{Plan, Weights, Zeros};
use crate::isa::{ByteTask, Bytes, Isa};

/// The largest number: onnxruntime rounds to so many steps on each side of zero, too.
const STEPS: f32 = 127.0;

/// Added to a number of at most 2^22 it leaves the nearest integer in the lowest bits, ties to even.
const TO_NEAREST: f32 = 12_582_912.0;

/// How the bytes of a row lie, to which those of the weights are parallel.
///
/// A byte of weights holds several numbers. Of `unit` bytes the first numbers are multiplied with the first `unit`
/// bytes of A, the second ones with the next, and so on.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    unit: usize,
    /// Bytes of weights of a row, up to a whole vector.
    row: usize,
    /// Numbers in a byte.
    in_byte: usize,
    /// Bytes of weights that have a sum and a scale together.
    group: usize,
}

impl Layout {
    /// Units and their sums are vectors.
    pub fn of_lanes(isa: Isa, plan: &Plan) -> Layout {
        Layout {
            unit: isa.vector_bytes(),
            group: 4,
            ..Layout::of_blocks(isa, plan)
        }
    }

    /// Units are four bytes; there is a sum for each block.
    pub fn of_blocks(isa: Isa, plan: &Plan) -> Layout {
        let len = isa.vector_bytes();
        let row = plan.blocks.saturating_mul(plan.bytes);
        Layout {
            unit: 4,
            row: row.saturating_add(len - 1) / len * len,
            in_byte: 8 / plan.bits,
            group: plan.bytes,
        }
    }

    /// Bytes of a row of A.
    pub fn bytes(&self) -> usize {
        self.row.saturating_mul(self.in_byte)
    }

    /// Sums, and scales, of a row.
    pub fn groups(&self) -> usize {
        self.row.div_ceil(self.group)
    }

    /// Elements of four bytes for as many rows.
    pub fn room(&self, rows: usize) -> usize {
        let row = (self.bytes() / 4).saturating_add(self.groups().saturating_mul(2));
        row.saturating_mul(rows)
    }
}

/// Rows of A.
pub(super) struct Rounded<'a> {
    pub layout: &'a Layout,
    /// In the order of the layout.
    pub bytes: &'a [u8],
    /// What the weights' zero points take part with: where they are in the middle of the range, all that is to be
    /// added, `i32`; else minus the sums, `f32`.
    pub zeros: &'a [u32],
    pub scales: &'a [f32],
}

impl<'a> Rounded<'a> {
    /// Rounds all rows. `scratch` is [`Layout::room`].
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn new(
        cpu: &CpuRun,
        isa: Isa,
        weights: &Weights,
        layout: &'a Layout,
        a: &[f32],
        scratch: &'a mut [u32],
    ) -> Result<Rounded<'a>> {
        let (plan, groups) = (weights.plan, layout.groups());
        let rows = a.len() / plan.k;
        let (bytes, rest) = scratch.split_at_mut(layout.bytes() / 4 * rows);
        let (zeros, scales) = rest.split_at_mut(groups * rows);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(bytes);
        let scales: &mut [f32] = bytemuck::cast_slice_mut(scales);
        let parts = (
            (by(bytes, layout.bytes()), by(zeros, groups)),
            by(scales, groups),
        );
        cpu.rows(
            rows,
            parts,
            plan.k,
            |piece, ((bytes, zeros), scales), cpu| {
                let outputs = (bytes.chunks_exact_mut(layout.bytes()))
                    .zip(zeros.chunks_exact_mut(groups))
                    .zip(scales.chunks_exact_mut(groups));
                for (row, ((bytes, zeros), scales)) in piece.zip(outputs) {
                    cpu.spend(plan.k)?;
                    isa.dispatch_bytes(Round {
                        plan,
                        layout,
                        a: &a[row * plan.k..][..plan.k],
                        middle: matches!(weights.zeros, Zeros::Middle),
                        bytes,
                        zeros,
                        scales,
                    });
                }
                Ok(())
            },
        )?;
        Ok(Rounded {
            layout,
            bytes,
            zeros,
            scales,
        })
    }
}

/// Rounds a row.
struct Round<'a> {
    plan: &'a Plan,
    layout: &'a Layout,
    a: &'a [f32],
    middle: bool,
    bytes: &'a mut [u8],
    zeros: &'a mut [u32],
    scales: &'a mut [f32],
}

impl ByteTask for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run<B: Bytes>(self, _: B) {
        match (self.plan.bits, self.layout.unit == 4) {
            (2, false) => self.of_bits::<B, 2, false>(),
            (4, false) => self.of_bits::<B, 4, false>(),
            (_, false) => self.of_bits::<B, 8, false>(),
            (2, true) => self.of_bits::<B, 2, true>(),
            (4, true) => self.of_bits::<B, 4, true>(),
            (_, true) => self.of_bits::<B, 8, true>(),
        }
    }
}

/// The largest magnitude; what is no number is larger than all that are.
#[inline(always)]
fn largest(a: &[f32]) -> f32 {
    // Magnitudes are ordered as their bits.
    let bits = a.iter().map(|x| x.to_bits() & 0x7fff_ffff);
    f32::from_bits(bits.fold(0, u32::max))
}

impl Round<'_> {
    #[inline(always)]
    fn of_bits<B: Bytes, const BITS: usize, const BLOCKS: bool>(self) {
        let (block, group) = (self.plan.block, self.layout.group);
        let in_byte = 8 / BITS;
        self.zeros.fill(0);
        self.scales.fill(0.0);
        let mut inverse = 0.0;
        let units = self.bytes.chunks_exact_mut(B::LEN * in_byte);
        for (unit, to) in units.enumerate() {
            // A vector of 64 bytes has at most 256 numbers.
            let mut rounded = [0u8; 256];
            let start = (unit * B::LEN * in_byte).min(self.a.len());
            let end = (start + B::LEN * in_byte).min(self.a.len());
            let a = &self.a[start..end];
            for (i, a) in a.chunks(block).enumerate() {
                let first = start + i * block;
                if first.is_multiple_of(block) {
                    let whole = first..self.a.len().min(first.saturating_add(block));
                    let largest = largest(&self.a[whole]);
                    inverse = if largest == 0.0 { 0.0 } else { STEPS / largest };
                    let groups = (block / in_byte).div_ceil(group);
                    let at = first / in_byte / group;
                    self.scales[at..at + groups].fill(largest / STEPS);
                }
                for (to, x) in rounded[i * block..].iter_mut().zip(a) {
                    *to = (x * inverse + TO_NEAREST).to_bits() as u8;
                }
            }
            place::<BITS, BLOCKS>(&rounded[..B::LEN * in_byte], to, B::LEN);
            let words = rounded[..B::LEN * in_byte].chunks_exact(4 * in_byte);
            for (word, numbers) in words.enumerate() {
                let sum: i32 = numbers.iter().map(|&x| i32::from(x as i8)).sum();
                let zero = &mut self.zeros[(unit * B::LEN + word * 4) / group];
                *zero = if self.middle {
                    (*zero as i32 - (sum << (BITS - 1))) as u32
                } else {
                    (f32::from_bits(*zero) - sum as f32).to_bits()
                };
            }
        }
    }
}

/// Puts numbers, which are in order, at their places in the layout; `BLOCKS` says that units are four bytes, else `len`.
#[inline(always)]
fn place<const BITS: usize, const BLOCKS: bool>(rounded: &[u8], to: &mut [u8], len: usize) {
    let in_byte = 8 / BITS;
    let unit = if BLOCKS { 4 } else { len };
    for (from, to) in rounded
        .chunks_exact(unit * in_byte)
        .zip(to.chunks_exact_mut(unit * in_byte))
    {
        for i in 0..unit {
            for p in 0..in_byte {
                to[p * unit + i] = from[i * in_byte + p];
            }
        }
    }
}
