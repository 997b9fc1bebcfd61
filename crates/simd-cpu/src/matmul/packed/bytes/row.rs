//! One row of A: vectors of neighbouring numbers of a few rows of weights at a time.

use kilim_core::Result;
use kilim_host::{CpuRun, by};

use super::super::{AHEAD, BLOCK, ROWS, SCALES_AHEAD, SPAN, Weights, Zeros, spaced};
use super::round::Rounded;
use crate::isa::{ByteTask, Bytes, Isa, Simd};

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
        // The smallest block may be a vector: the other way is not compiled then.
        match BLOCK * BITS / 8 >= B::LEN || self.weights.plan.bytes >= B::LEN {
            true => self.of_blocks::<B, BITS, ZEROS, true>(b),
            false => self.of_blocks::<B, BITS, ZEROS, false>(b),
        }
    }

    /// `ALONE` says that a vector has numbers of one block.
    #[inline(always)]
    fn of_blocks<B: Bytes, const BITS: usize, const ZEROS: bool, const ALONE: bool>(
        self,
        b: B,
    ) -> Result<()> {
        let (plan, weights, a) = (self.weights.plan, self.weights, self.a);
        let row = plan.blocks * plan.bytes;
        let vectors = row.div_ceil(B::LEN);
        let sums = vectors * B::LEN / 4;
        assert!(a.bytes.len() >= vectors * B::LEN * (8 / BITS));
        assert!(a.zeros.len() >= sums && a.scales.len() >= sums);
        let span = SPAN * plan.bytes / B::LEN;
        for places in spaced(self.y.len()) {
            let rows = places.map(|place| self.first + place);
            let mut totals = [b.floats().splat(0.0); ROWS];
            let mut points = [[0.0; SPAN]; ROWS];
            for start in (0..vectors).step_by(span) {
                let end = vectors.min(start + span);
                self.cpu.spend((end - start) * B::LEN * ROWS / SPEED)?;
                let block = start * B::LEN / plan.bytes;
                let mut zeros = [std::ptr::null(); ROWS];
                if ZEROS {
                    for r in 0..ROWS {
                        let points = weights.points::<BITS>(rows[r], block, &mut points[r]);
                        zeros[r] = points.wrapping_sub(block);
                    }
                }
                let vectors = Vectors {
                    bytes: rows.map(|r| weights.packed.as_ptr().wrapping_add(r * row)),
                    scales: rows.map(|r| weights.scales.as_ptr().wrapping_add(r * plan.blocks)),
                    zeros,
                    row,
                    blocks: plan.blocks,
                    block: plan.bytes,
                    a: a.bytes.as_ptr(),
                    a_zeros: a.zeros.as_ptr(),
                    a_scales: a.scales.as_ptr(),
                };
                let whole = end.min(row / B::LEN);
                for v in start..whole {
                    // SAFETY: the rows have this vector, and A has, by the assertions.
                    unsafe { vectors.add::<B, BITS, ZEROS, ALONE, true>(b, v, &mut totals) }
                }
                // Blocks are powers of two: a row of blocks as large as vectors is whole vectors.
                if !ALONE && whole < end {
                    // SAFETY: the rows end within this vector, and A has all of it, by the assertions.
                    unsafe { vectors.add::<B, BITS, ZEROS, false, false>(b, whole, &mut totals) }
                }
            }
            for (place, total) in places.into_iter().zip(totals) {
                self.y[place] = b.floats().sum(total);
            }
        }
        for (y, bias) in self.y.iter_mut().zip(self.bias.into_iter().flatten()) {
            *y += bias;
        }
        Ok(())
    }
}

/// Rows of weights, and of A what is parallel to them. All of it by itself: what lies behind a reference may be read anew for each vector.
#[derive(Clone, Copy)]
struct Vectors {
    bytes: [*const u8; ROWS],
    scales: [*const f32; ROWS],
    zeros: [*const f32; ROWS],
    /// Bytes and blocks of a row, and bytes of a block.
    row: usize,
    blocks: usize,
    block: usize,
    a: *const u8,
    a_zeros: *const u32,
    a_scales: *const f32,
}

impl Vectors {
    /// Adds the products of vector `v`; `WHOLE` says that all of it is in the row.
    ///
    /// # Safety
    /// The rows have bytes, scales and zero points of the vector, as far as they go, and A has all of it.
    #[inline(always)]
    unsafe fn add<
        B: Bytes,
        const BITS: usize,
        const ZEROS: bool,
        const ALONE: bool,
        const WHOLE: bool,
    >(
        self,
        b: B,
        v: usize,
        totals: &mut [<B::Floats as Simd>::V; ROWS],
    ) {
        // By hand: a loop is not always unrolled, and its totals are in memory then.
        // SAFETY: the contract is the same.
        unsafe {
            totals[0] = self.add_row::<B, BITS, ZEROS, ALONE, WHOLE>(b, v, 0, totals[0]);
            totals[1] = self.add_row::<B, BITS, ZEROS, ALONE, WHOLE>(b, v, 1, totals[1]);
            totals[2] = self.add_row::<B, BITS, ZEROS, ALONE, WHOLE>(b, v, 2, totals[2]);
            totals[3] = self.add_row::<B, BITS, ZEROS, ALONE, WHOLE>(b, v, 3, totals[3]);
        }
    }

    /// # Safety
    /// As for [`Vectors::add`].
    #[inline(always)]
    unsafe fn add_row<
        B: Bytes,
        const BITS: usize,
        const ZEROS: bool,
        const ALONE: bool,
        const WHOLE: bool,
    >(
        self,
        b: B,
        v: usize,
        r: usize,
        total: <B::Floats as Simd>::V,
    ) -> <B::Floats as Simd>::V {
        let (s, in_byte, lanes) = (b.floats(), 8 / BITS, B::LEN / 4);
        // Blocks are powers of two, and a division takes longer than a shift.
        let block = (v * B::LEN) >> self.block.trailing_zeros();
        let each = match ALONE {
            true => lanes,
            false => self.block.min(B::LEN) / 4,
        };
        let count = match ALONE {
            true => 1,
            false => (self.blocks - block).min(lanes >> each.trailing_zeros()),
        };
        let bytes = self.bytes[r].wrapping_add(v * B::LEN);
        let scales = self.scales[r].wrapping_add(block);
        s.prefetch(bytes.wrapping_add(AHEAD));
        s.prefetch(scales.cast::<u8>().wrapping_add(SCALES_AHEAD));
        // SAFETY: A has the vector. The row has `count` blocks from `block` on, so many scales and zero points, and a vector of
        // bytes where it is whole.
        unsafe {
            let w = match WHOLE {
                true => b.load(bytes),
                false => b.load_part(bytes, self.row - v * B::LEN),
            };
            let a_zeros = self.a_zeros.add(v * lanes);
            let mut sum = match ZEROS {
                true => b.splat(0),
                false => b.load(a_zeros.cast()),
            };
            for i in 0..in_byte {
                let a = b.load(self.a.add((v * in_byte + i) * B::LEN));
                sum = b.dot::<BITS>(b.number::<BITS>(w, i), a, sum);
            }
            let mut sum = b.real(sum);
            if ZEROS {
                let zeros = b.spread(self.zeros[r].wrapping_add(block), count, each);
                sum = s.fma(zeros, s.load(a_zeros.cast()), sum);
            }
            let a_scales = s.load(self.a_scales.add(v * lanes));
            s.fma(sum, s.mul(b.spread(scales, count, each), a_scales), total)
        }
    }
}
