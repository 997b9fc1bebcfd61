//! The register tile, and the loops around it.

use std::mem::MaybeUninit;
use std::ops::Range;

use kilim_core::Result;

use super::{Form, Product, Rows, Segment};
use crate::isa::{LINE, Simd, Task, read, write};
use crate::memory::share;
use kilim_host::CpuRun;

/// Elements of A that a block of rows may have: it shall stay in the second-level cache while the
/// panels of B go by.
const ROW_BLOCK: usize = 48 * 1024;
/// Where all of B is smaller, rows of A and C stay in the first-level cache instead.
const SMALL: usize = 6 * 1024;

impl Product<'_> {
    /// Blocks of rows that are computed one after another.
    pub(super) fn blocks(&self) -> usize {
        let k = self.depth.k;
        let block = if k.saturating_mul(self.n) <= SMALL {
            SMALL / (k + self.n)
        } else {
            ROW_BLOCK / k.clamp(1, 512)
        };
        self.m.div_ceil(block.max(4 * self.isa.tile_rows()))
    }

    /// The rows of a block; those of the one behind the last are empty.
    pub(super) fn block(&self, i: usize) -> Range<usize> {
        share(self.m, self.blocks(), i)
    }
}

/// Computes all rows of a product.
///
/// # Errors
/// `Aborted` where the run is to stop; C is then unfinished.
///
/// # Safety
/// For each row `r < m` and each segment, `a` is valid for reads from `rows.start(r) + offset` on;
/// `b` holds `n` columns packed for `isa` in the order of the segments; `bias` is null or valid
/// for `n` reads; `c` is valid for writes of `n` elements at each multiple of `c_stride`, and so is
/// `residual` for reads unless it is null. C overlaps nothing but the residual, which may be C.
#[inline(never)]
pub(crate) unsafe fn multiply(product: &Product, cpu: &CpuRun) -> Result<()> {
    if product.m == 0 || product.n == 0 {
        return Ok(());
    }
    if product.b.form() != Form::Float32 {
        // SAFETY: the contract of this function.
        return unsafe { multiply_widened(product, cpu) };
    }
    let room = &mut [];
    product.isa.dispatch(Multiply { product, cpu, room })
}

/// Elements of the largest block of a panel.
const PANEL: usize = 8192;

/// Does the work of [`multiply`] where B is in half precision: each block of a panel is widened once for a block of rows. The
/// room for it lies in a frame that no other product needs.
///
/// # Errors
/// `Aborted` where the run is to stop; C is then unfinished.
///
/// # Safety
/// As for [`multiply`].
#[inline(never)]
unsafe fn multiply_widened(product: &Product, cpu: &CpuRun) -> Result<()> {
    let mut room = [const { MaybeUninit::uninit() }; PANEL];
    let room = &mut room;
    product.isa.dispatch(Multiply { product, cpu, room })
}

/// Exists only under the contract of [`multiply`].
struct Multiply<'a> {
    product: &'a Product<'a>,
    cpu: &'a CpuRun<'a>,
    /// Memory for a block of a panel, where B is to be widened.
    room: &'a mut [MaybeUninit<f32>],
}

impl Task for Multiply<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Result<()> {
        let p = self.product;
        for i in 0..p.blocks() {
            // SAFETY: the contract of `multiply`; the rows are below `m`.
            unsafe { row_block(s, p, self.cpu, p.block(i), self.room)? }
        }
        Ok(())
    }
}

/// All columns of some rows.
///
/// # Safety
/// As for [`multiply`], with `end <= m`.
#[inline(always)]
unsafe fn row_block<S: Simd>(
    s: S,
    p: &Product,
    cpu: &CpuRun,
    Range { start: first, end }: Range<usize>,
    room: &mut [MaybeUninit<f32>],
) -> Result<()> {
    let padded = p.n.next_multiple_of(S::LANES);
    let (mut begin, mut depth_before) = (0, 0);
    for &until in &p.depth.blocks {
        let segments = &p.depth.segments[begin..until];
        let step = Step {
            first: begin == 0,
            last: until == p.depth.segments.len(),
        };
        let panel_width = S::TILE_VECTORS * S::LANES;
        let depth: usize = segments.iter().map(|s| s.len as usize).sum();
        for column in (0..padded).step_by(panel_width) {
            let vectors = (padded - column).min(panel_width) / S::LANES;
            let (width, before) = (vectors * S::LANES, column * p.depth.k);
            let packed = p.b.skip(before + depth_before * width);
            assert!(p.b.form() == Form::Float32 || depth * width <= room.len());
            let mut panel = Panel {
                segments,
                // SAFETY: B holds all rows of the panel, and the room was found to be large enough.
                b: unsafe { packed.singles(s, depth * width, room) },
                column,
                columns: (p.n - column).min(panel_width),
                step,
                next: packed.address(),
                next_step: 0,
            };
            let behind = column + width;
            if S::PREFETCHES && (behind < padded || !step.last) {
                // The panel behind it, or the first one's next block.
                let next = match behind < padded {
                    true => behind * p.depth.k + depth_before * (padded - behind).min(panel_width),
                    false => (depth_before + depth) * padded.min(panel_width),
                };
                panel.next = p.b.skip(next).address();
                let steps = depth * (end - first).div_ceil(s.tile_rows());
                let bytes = depth * width * p.b.form().size();
                panel.next_step = bytes.div_ceil(steps.max(1));
            }
            cpu.spend((end - first) * vectors * depth / 4)?;
            macro_rules! of_width {
                ($($nv:literal),*) => {
                    match vectors {
                        // SAFETY: the panel is as wide as the tile says.
                        $($nv if $nv <= S::TILE_VECTORS => unsafe {
                            panel_rows::<S, $nv>(s, p, &mut panel, first..end, depth)
                        },)*
                        _ => {}
                    }
                };
            }
            of_width!(1, 2);
        }
        begin = until;
        depth_before += depth;
    }
    Ok(())
}

/// Which part of the depth a tile adds up.
#[derive(Clone, Copy)]
struct Step {
    /// C holds nothing yet.
    first: bool,
    /// Nothing comes behind, so residual and activation are due.
    last: bool,
}

/// Some depth of a panel of B.
struct Panel<'a> {
    segments: &'a [Segment],
    b: *const f32,
    column: usize,
    columns: usize,
    step: Step,
    /// What of B comes next. The tiles fetch it, a little in each step: it may come from memory, for which the first of them
    /// would wait.
    next: *const u8,
    /// Bytes that are fetched in each step.
    next_step: usize,
}

/// Cuts rows into tiles of about the same height.
///
/// # Safety
/// As for [`row_block`]; the panel is `NV` vectors wide.
#[inline(always)]
unsafe fn panel_rows<S: Simd, const NV: usize>(
    s: S,
    p: &Product,
    panel: &mut Panel,
    rows: Range<usize>,
    depth: usize,
) {
    let tiles = rows.len().div_ceil(s.tile_rows());
    let (low, more) = (rows.len() / tiles, rows.len() % tiles);
    let mut row = rows.start;
    for t in 0..tiles {
        let height = low + usize::from(t < more);
        macro_rules! of_height {
            ($($mr:literal: $ku:literal),*) => {
                match height {
                    // SAFETY: rows `row..row + height` are among the rows.
                    $($mr if $mr <= S::TILE_ROWS => unsafe {
                        tile::<S, $mr, NV, $ku>(s, p, panel, row)
                    },)*
                    _ => {}
                }
            };
        }
        of_height!(1: 4, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 1, 10: 1, 11: 1, 12: 1);
        row += height;
        if S::PREFETCHES {
            panel.next = panel.next.wrapping_add(depth * panel.next_step);
        }
    }
}

/// `MR` rows by `NV` vectors of C. `KU` sets of accumulators hide the latency of flat tiles.
///
/// # Safety
/// As for [`panel_rows`]; `row + MR <= m`.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
unsafe fn tile<S: Simd, const MR: usize, const NV: usize, const KU: usize>(
    s: S,
    p: &Product,
    panel: &Panel,
    row: usize,
) {
    let mut starts = [p.a; MR];
    for (i, start) in starts.iter_mut().enumerate() {
        let offset = match p.rows {
            Rows::Strided(stride) => (row + i) * stride,
            // SAFETY: the list has `m` entries.
            Rows::Listed(list) => unsafe { *list.get_unchecked(row + i) as usize },
        };
        *start = start.wrapping_add(offset);
    }
    let mut acc = [[[s.splat(0.0); NV]; MR]; KU];
    let mut b = panel.b;
    let mut next = panel.next;
    /// Fetches a little of what comes next.
    macro_rules! fetch {
        () => {
            s.prefetch(next);
            if S::PREFETCHES && NV * S::LANES * size_of::<f32>() > LINE {
                // A single tile of a panel is to fetch as much as it reads.
                s.prefetch(next.wrapping_add(LINE));
            }
            next = next.wrapping_add(panel.next_step);
        };
    }
    for segment in panel.segments {
        let mut a = starts;
        for a in &mut a {
            *a = a.wrapping_add(segment.offset as usize);
        }
        let mut left = segment.len;
        while (KU > 1 || S::UNROLLED) && left >= 4 {
            // Written out: in a loop the accumulators would be picked, and held, in memory.
            // SAFETY: four more elements are left of each row, and four rows of the panel.
            unsafe {
                step(s, &a, b, 0, &mut acc[0]);
                fetch!();
                step(s, &a, b, 1, &mut acc[1 % KU]);
                fetch!();
                step(s, &a, b, 2, &mut acc[2 % KU]);
                fetch!();
                step(s, &a, b, 3, &mut acc[3 % KU]);
                fetch!();
            }
            for a in &mut a {
                *a = a.wrapping_add(4);
            }
            b = b.wrapping_add(4 * NV * S::LANES);
            left -= 4;
        }
        while left > 0 {
            // SAFETY: one more element is left.
            unsafe { step(s, &a, b, 0, &mut acc[0]) }
            fetch!();
            for a in &mut a {
                *a = a.wrapping_add(1);
            }
            b = b.wrapping_add(NV * S::LANES);
            left -= 1;
        }
    }
    let (total, parts) = acc.split_at_mut(1);
    for part in parts {
        for i in 0..MR {
            for j in 0..NV {
                total[0][i][j] = s.add(total[0][i][j], part[i][j]);
            }
        }
    }
    // SAFETY: the tile is inside C.
    unsafe {
        if panel.columns >= NV * S::LANES {
            finish::<S, NV, true>(s, p, panel, row, &mut total[0]);
        } else {
            // A copy: what is passed by address does not stay in registers.
            let mut rest = total[0];
            edge(s, p, panel, row, &mut rest);
        }
    }
}

/// [`finish`] for a tile that lacks columns, of any height.
///
/// # Safety
/// As for [`finish`].
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
unsafe fn edge<S: Simd, const NV: usize>(
    s: S,
    p: &Product,
    panel: &Panel,
    row: usize,
    acc: &mut [[S::V; NV]],
) {
    // SAFETY: the tile at `row` and the panel's column is inside C.
    unsafe { finish::<S, NV, false>(s, p, panel, row, acc) }
}

/// Adds the outer product of the `u`th elements.
///
/// # Safety
/// Each of `a` has more than `u` elements, `b` more than `u` rows.
#[inline(always)]
unsafe fn step<S: Simd, const MR: usize, const NV: usize>(
    s: S,
    a: &[*const f32; MR],
    b: *const f32,
    u: usize,
    acc: &mut [[S::V; NV]; MR],
) {
    let mut bs = [s.splat(0.0); NV];
    for (j, v) in bs.iter_mut().enumerate() {
        // SAFETY: `b` has more than `u` rows of `NV` vectors.
        *v = unsafe { s.load(b.add((u * NV + j) * S::LANES)) };
    }
    for i in 0..MR {
        // SAFETY: each of `a` has more than `u` elements.
        let x = s.splat(unsafe { *a[i].add(u) });
        for j in 0..NV {
            acc[i][j] = s.fma(x, bs[j], acc[i][j]);
        }
    }
}

/// Adds bias or what C holds, then residual and activation, and stores. `FULL` where the tile has
/// all its columns.
///
/// # Safety
/// The tile at `row` and the panel's column is inside C.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "an index counts several arrays, all unrolled"
)]
unsafe fn finish<S: Simd, const NV: usize, const FULL: bool>(
    s: S,
    p: &Product,
    panel: &Panel,
    row: usize,
    acc: &mut [[S::V; NV]],
) {
    let count = |j: usize| {
        if FULL {
            S::LANES
        } else {
            panel.columns.saturating_sub(j * S::LANES).min(S::LANES)
        }
    };
    let mut counts = [0; NV];
    for j in 0..NV {
        counts[j] = count(j);
    }
    let corner = row * p.c_stride + panel.column;
    /// For each vector of the tile that has elements: its place in C, and how many.
    macro_rules! each {
        (|$i:ident, $j:ident, $at:ident| $body:expr) => {
            for $i in 0..acc.len() {
                for $j in 0..NV {
                    if FULL || counts[$j] > 0 {
                        let $at = corner + $i * p.c_stride + $j * S::LANES;
                        $body
                    }
                }
            }
        };
    }
    // SAFETY: each vector's elements are inside of C, of the residual, and of the bias.
    unsafe {
        if !panel.step.first {
            each!(|i, j, at| {
                let c = read::<S, FULL>(s, p.c.add(at), counts[j]);
                acc[i][j] = s.add(acc[i][j], c);
            });
        } else if !p.bias.is_null() {
            let mut bias = [s.splat(0.0); NV];
            for j in 0..NV {
                if FULL || counts[j] > 0 {
                    let from = p.bias.add(panel.column + j * S::LANES);
                    bias[j] = read::<S, FULL>(s, from, counts[j]);
                }
            }
            for i in 0..acc.len() {
                for j in 0..NV {
                    acc[i][j] = s.add(acc[i][j], bias[j]);
                }
            }
        }
        if panel.step.last {
            if !p.residual.is_null() {
                each!(|i, j, at| {
                    let r = read::<S, FULL>(s, p.residual.add(at), counts[j]);
                    acc[i][j] = s.add(acc[i][j], r);
                });
            }
            let (low, high) = (s.splat(p.clamp.0), s.splat(p.clamp.1));
            for i in 0..acc.len() {
                for j in 0..NV {
                    acc[i][j] = s.min(s.max(acc[i][j], low), high);
                }
            }
        }
        each!(|i, j, at| write::<S, FULL>(s, p.c.add(at), acc[i][j], counts[j]));
    }
}
