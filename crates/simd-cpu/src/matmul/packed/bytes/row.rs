//! One row of A: vectors of neighbouring numbers of a few rows of weights at a time.

use std::array::from_fn;

use kilim_core::Result;
use kilim_host::{CpuRun, by};

use super::super::{AHEAD, Plan, SCALES_AHEAD, Weights, Zeros};
use super::round::Rounded;
use crate::isa::{ByteTask, Bytes, Isa, Simd};

/// Rows of weights that are multiplied together: their sums hide each other's latency.
const ROWS: usize = 4;

/// Blocks whose zero points are unpacked at a time; a whole number of vectors of weights.
const SPAN: usize = 64;

/// Bytes of weights that are multiplied in a nanosecond, at least.
const SPEED: usize = 8;

/// `y = a · wᵀ + bias`.
///
/// # Errors
/// `Aborted` where the run is to stop.
pub(super) fn multiply(
    cpu: &CpuRun,
    isa: Isa,
    weights: &Weights,
    a: &Rounded,
    bias: Option<&[f32]>,
    y: &mut [f32],
) -> Result<()> {
    let plan = weights.plan;
    let row = plan.blocks * plan.bytes;
    assert!(weights.packed.len() == plan.n * row && y.len() == plan.n);
    assert!(weights.scales.len() == plan.n * plan.blocks);
    cpu.rows(y.len(), by(y, 1), row / SPEED + 1, |piece, y, cpu| {
        isa.dispatch_bytes(Part {
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
    a: &'a Rounded<'a>,
    bias: Option<&'a [f32]>,
    first: usize,
    y: &'a mut [f32],
}

impl ByteTask for Part<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<B: Bytes>(self, b: B) -> Result<()> {
        let middle = matches!(self.weights.zeros, Zeros::Middle);
        match (self.weights.plan.bits, middle) {
            (2, true) => self.of_bits::<B, 2, false>(b),
            (4, true) => self.of_bits::<B, 4, false>(b),
            (_, true) => self.of_bits::<B, 8, false>(b),
            (2, false) => self.of_bits::<B, 2, true>(b),
            (4, false) => self.of_bits::<B, 4, true>(b),
            (_, false) => self.of_bits::<B, 8, true>(b),
        }
    }
}

impl Part<'_> {
    #[inline(always)]
    fn of_bits<B: Bytes, const BITS: usize, const ZEROS: bool>(self, b: B) -> Result<()> {
        let plan = self.weights.plan;
        let vectors = (plan.blocks * plan.bytes).div_ceil(B::LEN);
        let span = SPAN * plan.bytes / B::LEN;
        for (i, y) in self.y.chunks_mut(ROWS).enumerate() {
            // Where fewer rows are left, the last is multiplied several times: another loop is not worth its bytes.
            let rows = from_fn(|r| self.first + i * ROWS + r.min(y.len() - 1));
            let mut totals = [b.floats().splat(0.0); ROWS];
            let mut points = [[0.0; SPAN]; ROWS];
            for start in (0..vectors).step_by(span) {
                let end = vectors.min(start + span);
                self.cpu.spend((end - start) * B::LEN * ROWS / SPEED)?;
                let block = start * B::LEN / plan.bytes;
                let mut zeros = [std::ptr::null(); ROWS];
                if ZEROS {
                    for r in 0..ROWS {
                        zeros[r] = self.weights.points::<BITS>(rows[r], block, &mut points[r]);
                    }
                }
                let part = Vectors {
                    plan,
                    weights: self.weights,
                    a: self.a,
                    rows,
                    zeros,
                    start,
                    block,
                };
                part.add::<B, BITS, ZEROS>(b, end, &mut totals);
            }
            for (y, total) in y.iter_mut().zip(totals) {
                *y = b.floats().sum(total);
            }
        }
        for (y, bias) in self.y.iter_mut().zip(self.bias.into_iter().flatten()) {
            *y += bias;
        }
        Ok(())
    }
}

/// Some vectors of rows of weights.
struct Vectors<'a> {
    plan: &'a Plan,
    weights: &'a Weights<'a>,
    a: &'a Rounded<'a>,
    rows: [usize; ROWS],
    /// Zero points from the first vector on.
    zeros: [*const f32; ROWS],
    start: usize,
    /// The block of the first vector.
    block: usize,
}

impl Vectors<'_> {
    /// Adds the products of the vectors up to `end`.
    #[inline(always)]
    fn add<B: Bytes, const BITS: usize, const ZEROS: bool>(
        &self,
        b: B,
        end: usize,
        sums: &mut [<B::Floats as Simd>::V; ROWS],
    ) {
        let mut totals = *sums;
        let row = self.plan.blocks * self.plan.bytes;
        let whole = end.min(row / B::LEN);
        for v in self.start..whole {
            self.add_one::<B, BITS, ZEROS, true>(b, v, &mut totals);
        }
        if whole < end {
            self.add_one::<B, BITS, ZEROS, false>(b, whole, &mut totals);
        }
        *sums = totals;
    }

    /// Adds the products of vector `v`; `WHOLE` says that all of it is in the row.
    #[inline(always)]
    fn add_one<B: Bytes, const BITS: usize, const ZEROS: bool, const WHOLE: bool>(
        &self,
        b: B,
        v: usize,
        totals: &mut [<B::Floats as Simd>::V; ROWS],
    ) {
        let (s, p, in_byte) = (b.floats(), self.plan, 8 / BITS);
        let row = p.blocks * p.bytes;
        let (lanes, each) = (B::LEN / 4, p.bytes.min(B::LEN) / 4);
        // Blocks are powers of two, and a division takes longer than a product.
        let block = (v * B::LEN) >> p.bytes.trailing_zeros();
        let count = (p.blocks - block).min(lanes >> each.trailing_zeros());
        let a = self.a.bytes[v * B::LEN * in_byte..][..B::LEN * in_byte].as_ptr();
        let a_zeros = self.a.zeros[v * lanes..][..lanes].as_ptr();
        let a_scales = self.a.scales[v * lanes..][..lanes].as_ptr();
        for (r, total) in totals.iter_mut().enumerate() {
            let bytes = self
                .weights
                .packed
                .as_ptr()
                .wrapping_add(self.rows[r] * row + v * B::LEN);
            let scales = self
                .weights
                .scales
                .as_ptr()
                .wrapping_add(self.rows[r] * p.blocks + block);
            s.prefetch(bytes.wrapping_add(AHEAD));
            s.prefetch(scales.cast::<u8>().wrapping_add(SCALES_AHEAD));
            // SAFETY: A has these vectors. The row has `count` blocks from `block` on, so many scales and zero points,
            // and a vector of bytes from `bytes` on where it is whole.
            let (sum, w_scales, zeros) = unsafe {
                let w = match WHOLE {
                    true => b.load(bytes),
                    false => b.load_part(bytes, row - v * B::LEN),
                };
                let mut sum = match ZEROS {
                    true => b.splat(0),
                    false => b.load(a_zeros.cast()),
                };
                for i in 0..in_byte {
                    let a = b.load(a.add(i * B::LEN));
                    sum = b.dot::<BITS>(b.number::<BITS>(w, i), a, sum);
                }
                let zeros = match ZEROS {
                    true => {
                        let from = block - self.block;
                        b.spread(self.zeros[r].add(from), count, each)
                    }
                    false => s.splat(0.0),
                };
                (sum, b.spread(scales, count, each), zeros)
            };
            let mut sum = b.real(sum);
            // SAFETY: A has this vector.
            let scales = unsafe {
                if ZEROS {
                    sum = s.fma(zeros, s.load(a_zeros.cast()), sum);
                }
                s.mul(w_scales, s.load(a_scales))
            };
            *total = s.fma(sum, scales, *total);
        }
    }
}

impl Weights<'_> {
    /// Where the zero points of row `j` are, from block `first` on; unpacked ones are written to `room`.
    #[inline(always)]
    fn points<const BITS: usize>(
        &self,
        j: usize,
        first: usize,
        room: &mut [f32; SPAN],
    ) -> *const f32 {
        let p = self.plan;
        match self.zeros {
            Zeros::Middle => {}
            Zeros::Real(zeros) => return zeros[j * p.blocks + first..].as_ptr(),
            Zeros::Packed(zeros) => {
                // Spans begin at a whole byte.
                let bytes = &zeros[j * p.zero_bytes..][..p.zero_bytes][first * BITS / 8..];
                for (to, byte) in room.chunks_exact_mut(8 / BITS).zip(bytes) {
                    for (i, to) in to.iter_mut().enumerate() {
                        *to = f32::from((byte >> (i * BITS)) & (u8::MAX >> (8 - BITS)));
                    }
                }
            }
        }
        room.as_ptr()
    }
}
