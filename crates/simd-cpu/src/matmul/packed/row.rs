//! One row of A: a few rows of weights at a time are multiplied as they are widened.

use kilim_core::Result;
use kilim_reference_cpu::frame::{CpuRun, by};

use super::{COST, Weights, numbers};
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
        let whole = self.y.len() - self.y.len() % ROWS;
        let (many, rest) = self.y.split_at_mut(whole);
        for (i, y) in many.chunks_exact_mut(ROWS).enumerate() {
            let dots = dots::<S, BITS, ROWS>(s, cpu, weights, a, first + i * ROWS)?;
            y.copy_from_slice(&dots);
        }
        for (i, y) in rest.iter_mut().enumerate() {
            [*y] = dots::<S, BITS, 1>(s, cpu, weights, a, first + whole + i)?;
        }
        for (y, bias) in self.y.iter_mut().zip(self.bias.into_iter().flatten()) {
            *y += bias;
        }
        Ok(())
    }
}

/// Columns that are multiplied between two looks at what may stop the run.
const SPAN: usize = 4096;

/// The products of `a` with rows of weights from `j` on.
#[inline(always)]
fn dots<S: Simd, const BITS: usize, const R: usize>(
    s: S,
    cpu: &CpuRun,
    weights: &Weights,
    a: &[f32],
    j: usize,
) -> Result<[f32; R]> {
    let block = weights.plan.block;
    let span = (SPAN / block).max(1);
    let mut totals = [s.splat(0.0); R];
    for (i, a) in a.chunks(span * block).enumerate() {
        cpu.spend(a.len())?;
        add_products::<S, BITS, R>(s, weights, a, j, i * span, &mut totals);
    }
    let mut dots = [0.0; R];
    for r in 0..R {
        dots[r] = s.sum(totals[r]);
    }
    Ok(dots)
}

/// Adds the products of whole blocks from `first` on.
#[inline(always)]
fn add_products<S: Simd, const BITS: usize, const R: usize>(
    s: S,
    weights: &Weights,
    a: &[f32],
    j: usize,
    first: usize,
    sums: &mut [S::V; R],
) {
    let block = weights.plan.block;
    let mut totals = *sums;
    for (i, a) in a.chunks_exact(block).enumerate() {
        let mut bytes: [&[u8]; R] = [&[]; R];
        let mut zeros = [s.splat(0.0); R];
        let mut scales = zeros;
        let mut parts = zeros;
        for r in 0..R {
            let from = weights.block::<BITS>(j + r, first + i);
            bytes[r] = from.bytes;
            zeros[r] = s.splat(from.zero);
            scales[r] = s.splat(from.scale);
        }
        for at in (0..block).step_by(S::LANES) {
            // SAFETY: blocks are multiples of the lanes, and `a` is as long as a block.
            let x = unsafe { s.load(a.as_ptr().add(at)) };
            for r in 0..R {
                // SAFETY: as above.
                let w = unsafe { numbers::<S, BITS>(s, bytes[r], at) };
                parts[r] = s.fma(x, s.sub(w, zeros[r]), parts[r]);
            }
        }
        for r in 0..R {
            totals[r] = s.fma(scales[r], parts[r], totals[r]);
        }
    }
    *sums = totals;
}
