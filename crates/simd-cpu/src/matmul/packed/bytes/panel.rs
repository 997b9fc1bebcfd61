//! Many rows of A: each thread puts the words of a panel of weights side by side and multiplies them with all rows.

use std::array::from_fn;

use kilim_core::Result;
use kilim_host::{CpuRun, Shared};

use super::super::{COST, Plan, Weights, Zeros};
use super::round::Rounded;
use crate::isa::{ByteTask, Bytes, Isa, Simd, read, write};

/// Bytes of weights that are multiplied together: those of a sum.
const WORD: usize = 4;

/// Vectors of columns of a tile, and its most rows.
const VECTORS: usize = 2;
const MOST_ROWS: usize = 6;

/// Columns of a panel, which are rows of weights.
fn width(isa: Isa) -> usize {
    VECTORS * isa.vector_bytes() / WORD
}

/// Elements of scratch memory of a thread: words, scales and zero points of a panel.
pub(super) fn room(isa: Isa, plan: &Plan) -> usize {
    let words = plan.blocks.saturating_mul(plan.bytes) / WORD;
    let all = words.saturating_add(plan.blocks.saturating_mul(2));
    all.saturating_mul(width(isa))
}

/// `y = a · wᵀ + bias`. Of `scratch` each thread has [`room`].
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
    scratch: &mut [u32],
) -> Result<()> {
    let (p, width) = (weights.plan, width(isa));
    assert!(y.len() == p.m * p.n && bias.is_none_or(|bias| bias.len() == p.n));
    assert!(a.bytes.len() == p.m * a.layout.bytes());
    assert!(a.scales.len() == p.m * a.layout.groups() && a.zeros.len() == a.scales.len());
    let numbers = p.k.saturating_mul(width);
    // Four bytes in each lane.
    let products = isa.cost(numbers.saturating_mul(p.m) / WORD);
    let cost = numbers.saturating_mul(COST).saturating_add(products);
    let y = Shared::new(y);
    cpu.rows_with(
        p.n.div_ceil(width),
        (),
        scratch,
        cost,
        |piece, (), scratch, cpu| {
            for panel in piece {
                let first = panel * width;
                isa.dispatch_bytes(Panel {
                    cpu,
                    weights,
                    a,
                    bias,
                    first,
                    columns: width.min(p.n - first),
                    y,
                    scratch,
                })?;
            }
            Ok(())
        },
    )
}

/// The products of some columns.
struct Panel<'a> {
    cpu: &'a CpuRun<'a>,
    weights: &'a Weights<'a>,
    a: &'a Rounded<'a>,
    bias: Option<&'a [f32]>,
    first: usize,
    columns: usize,
    y: Shared<f32>,
    scratch: &'a mut [u32],
}

impl ByteTask for Panel<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<B: Bytes>(self, b: B) -> Result<()> {
        match self.weights.plan.bits {
            2 => self.of_bits::<B, 2>(b),
            4 => self.of_bits::<B, 4>(b),
            _ => self.of_bits::<B, 8>(b),
        }
    }
}

impl Panel<'_> {
    #[inline(always)]
    fn of_bits<B: Bytes, const BITS: usize>(self, b: B) -> Result<()> {
        let p = self.weights.plan;
        let width = VECTORS * B::LEN / WORD;
        let words = p.blocks * p.bytes / WORD;
        let (packed, rest) = self.scratch.split_at_mut(words * width);
        let (scales, zeros) = rest.split_at_mut(p.blocks * width);
        let scales: &mut [f32] = bytemuck::cast_slice_mut(scales);
        let zeros: &mut [f32] = bytemuck::cast_slice_mut(zeros);
        self.cpu.spend(words * width)?;
        for c in 0..width {
            // Columns that are not there are as the last: they are not stored.
            let j = self.first + c.min(self.columns - 1);
            for block in 0..p.blocks {
                let from = self.weights.block::<BITS>(j, block);
                scales[block * width + c] = from.scale;
                zeros[block * width + c] = from.zero;
            }
            let row = &self.weights.packed[j * p.blocks * p.bytes..][..p.blocks * p.bytes];
            let (row, _) = row.as_chunks::<WORD>();
            for (to, word) in packed.chunks_exact_mut(width).zip(row) {
                to[c] = u32::from_ne_bytes(*word);
            }
        }
        let tiles = Tiles {
            plan: p,
            a: self.a,
            packed,
            scales,
            zeros,
            bias: self.bias,
            first: self.first,
            columns: self.columns,
            y: self.y,
        };
        let middle = matches!(self.weights.zeros, Zeros::Middle);
        let cost = p.k * width / B::LEN;
        for row in (0..p.m).step_by(B::TILE_ROWS) {
            let rows = B::TILE_ROWS.min(p.m - row);
            self.cpu.spend(cost * rows)?;
            match (rows, middle) {
                (1, true) => tiles.tile::<B, BITS, 1, false>(b, row),
                (2, true) => tiles.tile::<B, BITS, 2, false>(b, row),
                (3, true) => tiles.tile::<B, BITS, 3, false>(b, row),
                (4, true) => tiles.tile::<B, BITS, 4, false>(b, row),
                (5, true) => tiles.tile::<B, BITS, 5, false>(b, row),
                (_, true) => tiles.tile::<B, BITS, MOST_ROWS, false>(b, row),
                (1, false) => tiles.tile::<B, BITS, 1, true>(b, row),
                (2, false) => tiles.tile::<B, BITS, 2, true>(b, row),
                (3, false) => tiles.tile::<B, BITS, 3, true>(b, row),
                (4, false) => tiles.tile::<B, BITS, 4, true>(b, row),
                (5, false) => tiles.tile::<B, BITS, 5, true>(b, row),
                (_, false) => tiles.tile::<B, BITS, MOST_ROWS, true>(b, row),
            }
        }
        Ok(())
    }
}

/// A panel side by side, and the rows that it is multiplied with.
struct Tiles<'a> {
    plan: &'a Plan,
    a: &'a Rounded<'a>,
    /// A word of each column, then the next of each.
    packed: &'a [u32],
    /// The numbers of a block of each column, then of the next.
    scales: &'a [f32],
    zeros: &'a [f32],
    bias: Option<&'a [f32]>,
    first: usize,
    columns: usize,
    y: Shared<f32>,
}

impl Tiles<'_> {
    /// The products of `ROWS` rows of A from `row` on.
    #[inline(always)]
    fn tile<B: Bytes, const BITS: usize, const ROWS: usize, const ZEROS: bool>(
        &self,
        b: B,
        row: usize,
    ) {
        if ROWS > B::TILE_ROWS {
            return;
        }
        let (s, p, in_byte) = (b.floats(), self.plan, 8 / BITS);
        let (lanes, words) = (B::LEN / WORD, p.bytes / WORD);
        let (size, groups) = (self.a.layout.bytes(), self.a.layout.groups());
        let a: [*const u8; ROWS] = from_fn(|r| self.a.bytes[(row + r) * size..][..size].as_ptr());
        let group = |r: usize| (row + r) * groups..(row + r + 1) * groups;
        let a_zeros: [&[u32]; ROWS] = from_fn(|r| &self.a.zeros[group(r)]);
        let a_scales: [&[f32]; ROWS] = from_fn(|r| &self.a.scales[group(r)]);
        let columns = VECTORS * lanes;
        assert!(self.packed.len() >= p.blocks * words * columns);
        assert!(self.scales.len() >= p.blocks * columns && self.zeros.len() >= p.blocks * columns);
        assert!(size >= p.blocks * words * in_byte * WORD);
        let mut packed = self.packed.as_ptr();
        let mut x = a;
        let mut totals = [[s.splat(0.0); VECTORS]; ROWS];
        for block in 0..p.blocks {
            let mut sums = [[b.splat(0); VECTORS]; ROWS];
            if !ZEROS {
                for r in 0..ROWS {
                    sums[r] = [b.splat(a_zeros[r][block] as i32); VECTORS];
                }
            }
            for _ in 0..words {
                let mut numbers = [b.splat(0); VECTORS];
                for (v, numbers) in numbers.iter_mut().enumerate() {
                    // SAFETY: the words of all blocks are so many vectors, by the assertions.
                    *numbers = unsafe { b.load(packed.wrapping_add(v * lanes).cast()) };
                }
                packed = packed.wrapping_add(columns);
                for i in 0..in_byte {
                    let mut w = numbers;
                    for w in &mut w {
                        *w = b.number::<BITS>(*w, i);
                    }
                    for r in 0..ROWS {
                        // SAFETY: a row has `in_byte` times the bytes of a row of weights, by the assertions.
                        let x = unsafe { x[r].cast::<i32>().read_unaligned() };
                        let x = b.splat(x);
                        for v in 0..VECTORS {
                            sums[r][v] = b.dot::<BITS>(w[v], x, sums[r][v]);
                        }
                    }
                    x = x.map(|x| x.wrapping_add(WORD));
                }
            }
            let at = block * columns;
            for v in 0..VECTORS {
                let scales = self.scales.as_ptr().wrapping_add(at + v * lanes);
                let zeros = self.zeros.as_ptr().wrapping_add(at + v * lanes);
                // SAFETY: each block has vectors of them, by the assertions.
                let (scales, zeros) = unsafe { (s.load(scales), s.load(zeros)) };
                for r in 0..ROWS {
                    let mut sum = b.real(sums[r][v]);
                    if ZEROS {
                        let a_zero = f32::from_bits(a_zeros[r][block]);
                        sum = s.fma(zeros, s.splat(a_zero), sum);
                    }
                    let scale = s.mul(scales, s.splat(a_scales[r][block]));
                    totals[r][v] = s.fma(sum, scale, totals[r][v]);
                }
            }
        }
        for (r, totals) in totals.into_iter().enumerate() {
            for (v, total) in totals.into_iter().enumerate() {
                let count = self.columns.saturating_sub(v * lanes).min(lanes);
                match count {
                    0 => {}
                    _ if count == lanes => self.store::<B, true>(b, row + r, v, total, count),
                    _ => self.store::<B, false>(b, row + r, v, total, count),
                }
            }
        }
    }

    /// Writes the first `count` of a vector of columns, all if `FULL`.
    #[inline(always)]
    fn store<B: Bytes, const FULL: bool>(
        &self,
        b: B,
        row: usize,
        v: usize,
        mut total: <B::Floats as Simd>::V,
        count: usize,
    ) {
        let (s, first) = (b.floats(), self.first + v * (B::LEN / WORD));
        if let Some(bias) = self.bias {
            // SAFETY: these are so many.
            let bias = unsafe { read::<_, FULL>(s, bias[first..][..count].as_ptr(), count) };
            total = s.add(total, bias);
        }
        let to = self.y.at(row * self.plan.n + first, count);
        // SAFETY: the output has these elements, which no other panel writes.
        unsafe { write::<_, FULL>(s, to, total, count) };
    }
}
