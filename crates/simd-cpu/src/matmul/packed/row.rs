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
    let cost = a.len().saturating_mul(COST);
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
    let mut totals = [s.splat(0.0); R];
    for (i, a) in a.chunks_exact(block).enumerate() {
        cpu.spend(block)?;
        let blocks: [_; R] = std::array::from_fn(|r| weights.block::<BITS>(j + r, i));
        let mut zeros = totals;
        let mut sums = totals;
        for r in 0..R {
            zeros[r] = s.splat(blocks[r].zero);
            sums[r] = s.splat(0.0);
        }
        for at in (0..block).step_by(S::LANES) {
            // SAFETY: blocks are multiples of the lanes, and `a` is as long as a block.
            let x = unsafe { s.load(a.as_ptr().add(at)) };
            for r in 0..R {
                // SAFETY: as above.
                let w = unsafe { numbers::<S, BITS>(s, blocks[r].bytes, at) };
                sums[r] = s.fma(x, s.sub(w, zeros[r]), sums[r]);
            }
        }
        for r in 0..R {
            totals[r] = s.fma(s.splat(blocks[r].scale), sums[r], totals[r]);
        }
    }
    let mut dots = [0.0; R];
    for r in 0..R {
        dots[r] = s.sum(totals[r]);
    }
    Ok(dots)
}
