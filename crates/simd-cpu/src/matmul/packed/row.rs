//! One row of A: a few rows of weights at a time are multiplied as they are widened.

use std::array::from_fn;

use kilim_core::Result;
use kilim_host::{CpuRun, by};

use super::{AHEAD, COST, SCALES_AHEAD, Weights, numbers};
use crate::isa::{Isa, Simd, Task};

/// Rows of weights that are multiplied together: their sums hide each other's latency.
const ROWS: usize = 4;

/// `y = a · wᵀ + bias`; `a` has zeros behind its last column to the end of the last block.
///
/// # Errors
/// `Aborted` where the run is to stop.
pub(super) fn multiply(
    cpu: &CpuRun,
    isa: Isa,
    weights: &Weights,
    a: &[f32],
    bias: Option<&[f32]>,
    y: &mut [f32],
) -> Result<()> {
    // Widening takes most of the time: about a vector in a nanosecond.
    let cost = a.len().saturating_mul(COST) / isa.lanes();
    cpu.rows(y.len(), by(y, 1), cost, |piece, y, cpu| {
        isa.dispatch(Part {
            cpu,
            weights,
            a,
            bias: bias.map(|bias| &bias[piece.clone()]),
            first: piece.start,
            y,
        })
    })
}

/// Some elements of the row, from `first` on.
struct Part<'a> {
    cpu: &'a CpuRun<'a>,
    weights: &'a Weights<'a>,
    a: &'a [f32],
    bias: Option<&'a [f32]>,
    first: usize,
    y: &'a mut [f32],
}

impl Task for Part<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Result<()> {
        match self.weights.plan.bits {
            2 => self.of_bits::<S, 2>(s),
            4 => self.of_bits::<S, 4>(s),
            _ => self.of_bits::<S, 8>(s),
        }
    }
}

impl Part<'_> {
    #[inline(always)]
    fn of_bits<S: Simd, const BITS: usize>(self, s: S) -> Result<()> {
        let Part {
            cpu,
            weights,
            a,
            first,
            ..
        } = self;
        for (i, y) in self.y.chunks_mut(ROWS).enumerate() {
            // Where fewer rows are left, the last is multiplied several times: another loop is not worth its bytes.
            let rows = from_fn(|r| first + i * ROWS + r.min(y.len() - 1));
            let dots = dots::<S, BITS>(s, cpu, weights, a, rows)?;
            y.copy_from_slice(&dots[..y.len()]);
        }
        for (y, bias) in self.y.iter_mut().zip(self.bias.into_iter().flatten()) {
            *y += bias;
        }
        Ok(())
    }
}

/// Bytes that are fetched together.
const LINE: usize = 64;

/// Columns that are multiplied between two looks at what may stop the run.
const SPAN: usize = 4096;

/// The products of `a` with rows of weights.
#[inline(always)]
fn dots<S: Simd, const BITS: usize>(
    s: S,
    cpu: &CpuRun,
    weights: &Weights,
    a: &[f32],
    rows: [usize; ROWS],
) -> Result<[f32; ROWS]> {
    let block = weights.plan.block;
    let span = (SPAN / block).max(1);
    let mut totals = [s.splat(0.0); ROWS];
    for (i, a) in a.chunks(span * block).enumerate() {
        cpu.spend(a.len())?;
        add_products::<S, BITS>(s, weights, a, rows, i * span, &mut totals);
    }
    let mut dots = [0.0; ROWS];
    for r in 0..ROWS {
        dots[r] = s.sum(totals[r]);
    }
    Ok(dots)
}

/// Adds the products of whole blocks from `first` on.
#[inline(always)]
fn add_products<S: Simd, const BITS: usize>(
    s: S,
    weights: &Weights,
    a: &[f32],
    rows: [usize; ROWS],
    first: usize,
    sums: &mut [S::V; ROWS],
) {
    let block = weights.plan.block;
    let mut totals = *sums;
    for (i, a) in a.chunks_exact(block).enumerate() {
        let mut bytes: [&[u8]; ROWS] = [&[]; ROWS];
        let mut zeros = [s.splat(0.0); ROWS];
        let mut scales = zeros;
        let mut parts = zeros;
        for r in 0..ROWS {
            let from = weights.block::<BITS>(rows[r], first + i);
            bytes[r] = from.bytes;
            for line in from.bytes.chunks(LINE) {
                s.prefetch(line.as_ptr().wrapping_add(AHEAD));
            }
            let scale = rows[r] * weights.plan.blocks + first + i;
            let scale: *const u8 = weights.scales.as_ptr().wrapping_add(scale).cast();
            s.prefetch(scale.wrapping_add(SCALES_AHEAD));
            zeros[r] = s.splat(from.zero);
            scales[r] = s.splat(from.scale);
        }
        for at in (0..block).step_by(S::LANES) {
            // SAFETY: blocks are multiples of the lanes, and `a` is as long as a block.
            let x = unsafe { s.load(a.as_ptr().add(at)) };
            for r in 0..ROWS {
                // SAFETY: blocks are multiples of the lanes, and `bytes[r]` holds a block.
                let w = unsafe { numbers::<S, BITS>(s, bytes[r], at) };
                parts[r] = s.fma(x, s.sub(w, zeros[r]), parts[r]);
            }
        }
        for r in 0..ROWS {
            totals[r] = s.fma(scales[r], parts[r], totals[r]);
        }
    }
    *sums = totals;
}
