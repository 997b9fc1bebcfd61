//! One row of A: a few rows of weights at a time are multiplied as they are widened.
//!
//! With numbers `w`, a zero point `z` and a scale `s`, a block's part is `s (Σ x w - z Σ x)`: the sums of A are made once for all rows.

use kilim_core::Result;
use kilim_host::{CpuRun, by};

use super::{AHEAD, COST, Plan, ROWS, SCALES_AHEAD, SPAN, Weights, spaced};
use crate::isa::{Isa, Simd, Task};

/// Elements of scratch memory: A as it is multiplied, and a vector of sums for each block.
pub(super) fn room(isa: Isa, plan: &Plan) -> usize {
    plan.padded
        .saturating_add(plan.blocks.saturating_mul(isa.lanes()))
}

/// `y = a · wᵀ + bias`. `scratch` has [`room`].
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
    scratch: &mut [f32],
) -> Result<()> {
    let p = weights.plan;
    cpu.spend(p.padded)?;
    let (placed, sums) = scratch[..room(isa, p)].split_at_mut(p.padded);
    let sums = &mut sums[..p.blocks * isa.lanes()];
    let (own, rest) = placed.split_at_mut(p.k);
    own.copy_from_slice(a);
    rest.fill(0.0);
    isa.dispatch(Place {
        bits: p.bits,
        block: p.block,
        a: placed,
        sums,
    });
    assert!(weights.packed.len() >= p.n * p.blocks * p.bytes && y.len() == p.n);
    assert!(weights.scales.len() >= p.n * p.blocks);
    // Widening takes most of the time: about a vector in a nanosecond.
    let cost = p.padded.saturating_mul(COST) / isa.lanes();
    cpu.rows(y.len(), by(y, 1), cost, |piece, y, cpu| {
        isa.dispatch(Part {
            cpu,
            weights,
            a: placed,
            sums,
            bias: bias.map(|bias| &bias[piece.clone()]),
            first: piece.start,
            y,
        })
    })
}

/// Divides A by the places of the numbers that it is multiplied with, and adds up its blocks, each lane by itself.
struct Place<'a> {
    bits: usize,
    block: usize,
    a: &'a mut [f32],
    sums: &'a mut [f32],
}

impl Task for Place<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut places = [1.0; 16];
        for (lane, place) in places.iter_mut().enumerate() {
            *place = 1.0 / S::place(self.bits, lane);
        }
        let blocks = self.a.chunks_exact_mut(self.block);
        for (a, sums) in blocks.zip(self.sums.chunks_exact_mut(S::LANES)) {
            // SAFETY: blocks are multiples of the lanes, and no vector has more than 16.
            unsafe {
                let places = s.load(places.as_ptr());
                let mut sum = s.splat(0.0);
                for a in a.chunks_exact_mut(S::LANES) {
                    let x = s.load(a.as_ptr());
                    sum = s.add(sum, x);
                    s.store(a.as_mut_ptr(), s.mul(x, places));
                }
                s.store(sums.as_mut_ptr(), sum);
            }
        }
    }
}

/// Some elements of the row, from `first` on.
struct Part<'a> {
    cpu: &'a CpuRun<'a>,
    weights: &'a Weights<'a>,
    a: &'a [f32],
    sums: &'a [f32],
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
        let (p, weights) = (self.weights.plan, self.weights);
        assert!(self.a.len() == p.blocks * p.block && self.sums.len() == p.blocks * S::LANES);
        for places in spaced(self.y.len()) {
            let rows = places.map(|place| self.first + place);
            let mut totals = [s.splat(0.0); ROWS];
            // Where there are no zero points, they are in the middle: another loop is not worth its bytes.
            let mut points = [[f32::from(1u8 << (BITS - 1)); SPAN]; ROWS];
            for start in (0..p.blocks).step_by(SPAN) {
                let end = p.blocks.min(start + SPAN);
                self.cpu.spend((end - start) * p.block)?;
                let mut zeros = [std::ptr::null(); ROWS];
                for r in 0..ROWS {
                    let points = weights.points::<BITS>(rows[r], start, &mut points[r]);
                    zeros[r] = points.wrapping_sub(start);
                }
                let blocks = Blocks {
                    bytes: rows
                        .map(|r| (weights.packed.as_ptr()).wrapping_add(r * p.blocks * p.bytes)),
                    scales: rows.map(|r| weights.scales.as_ptr().wrapping_add(r * p.blocks)),
                    zeros,
                    block: p.block,
                    a: self.a.as_ptr(),
                    sums: self.sums.as_ptr(),
                };
                for block in start..end {
                    // SAFETY: the rows and A have this block, by the assertions.
                    unsafe { blocks.add::<S, BITS>(s, block, &mut totals) }
                }
            }
            for (place, total) in places.into_iter().zip(totals) {
                self.y[place] = s.sum(total);
            }
        }
        for (y, bias) in self.y.iter_mut().zip(self.bias.into_iter().flatten()) {
            *y += bias;
        }
        Ok(())
    }
}

/// Bytes that are fetched together.
const LINE: usize = 64;

/// Rows of weights and A. All of it by itself: what lies behind a reference may be read anew for each block.
#[derive(Clone, Copy)]
struct Blocks {
    bytes: [*const u8; ROWS],
    scales: [*const f32; ROWS],
    zeros: [*const f32; ROWS],
    /// Numbers of a block.
    block: usize,
    a: *const f32,
    sums: *const f32,
}

impl Blocks {
    /// Adds the products of a block.
    ///
    /// # Safety
    /// The rows and A have the block, the rows their scales and zero points, too.
    #[inline(always)]
    unsafe fn add<S: Simd, const BITS: usize>(self, s: S, block: usize, totals: &mut [S::V; ROWS]) {
        let size = self.block * BITS / 8;
        let bytes = self.bytes.map(|bytes| bytes.wrapping_add(block * size));
        let scales = self.scales.map(|scales| scales.wrapping_add(block));
        for (bytes, scales) in bytes.iter().zip(scales) {
            for line in (0..size).step_by(LINE) {
                s.prefetch(bytes.wrapping_add(line + AHEAD));
            }
            s.prefetch(scales.cast::<u8>().wrapping_add(SCALES_AHEAD));
        }
        // SAFETY: blocks are multiples of the lanes, and the contract is the same.
        unsafe {
            let sums = s.load(self.sums.add(block * S::LANES));
            let part = |r: usize| s.mul(sums, s.splat(-*self.zeros[r].wrapping_add(block)));
            // By hand: a loop is not always unrolled, and its sums are in memory then.
            let [mut p0, mut p1, mut p2, mut p3] = [part(0), part(1), part(2), part(3)];
            for at in (0..self.block).step_by(S::LANES) {
                let x = s.load(self.a.add(block * self.block + at));
                let at = at * BITS / 8;
                p0 = s.fma(x, s.load_placed::<BITS>(bytes[0].add(at)), p0);
                p1 = s.fma(x, s.load_placed::<BITS>(bytes[1].add(at)), p1);
                p2 = s.fma(x, s.load_placed::<BITS>(bytes[2].add(at)), p2);
                p3 = s.fma(x, s.load_placed::<BITS>(bytes[3].add(at)), p3);
            }
            totals[0] = s.fma(s.splat(*scales[0]), p0, totals[0]);
            totals[1] = s.fma(s.splat(*scales[1]), p1, totals[1]);
            totals[2] = s.fma(s.splat(*scales[2]), p2, totals[2]);
            totals[3] = s.fma(s.splat(*scales[3]), p3, totals[3]);
        }
    }
}
