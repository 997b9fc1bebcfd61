//! Matrix products: panels of packed B, register tiles over rows of A.
//!
//! C's tile is `TILE_ROWS` rows by `TILE_VECTORS` vectors. B is packed in panels as wide as a tile, so that
//! the inner loop reads it in order; A is read where it is. What a row of A is, is said by a
//! [`Rows`] (where it begins) and a list of [`Segment`]s (which runs of elements from there on
//! make up the row): so a convolution is a product, too, without copying windows.

mod few;
mod form;
mod pack;
mod reading;
mod tile;

pub(crate) use few::FewRows;
pub(crate) use form::{Form, Matrices, Packed};
pub(crate) use pack::{Matrix, Panels, RowStarts, append, pack};
pub(crate) use reading::Reading;
pub(crate) use tile::multiply;

use std::ops::Range;

use kilim_core::Result;
use kilim_core::ops::Activation;

use super::isa::Isa;
use kilim_host::CpuRun;

/// Where each row of A begins, in elements.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    Strided(usize),
    Listed(&'a [u32]),
}

impl Rows<'_> {
    #[inline(always)]
    pub(crate) fn start(self, row: usize) -> usize {
        match self {
            Rows::Strided(stride) => row * stride,
            Rows::Listed(starts) => starts[row] as usize,
        }
    }
}

/// A run of elements of a row of A, `offset` behind the row's beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Segment {
    pub offset: u32,
    pub len: u32,
}

/// The columns of A, in order, cut into blocks that stay in the first-level cache.
#[derive(Clone, Debug)]
pub(crate) struct Depth {
    segments: Vec<Segment>,
    /// End of each block in `segments`.
    blocks: Vec<usize>,
    k: usize,
    reach: usize,
}

impl Depth {
    /// `k` columns side by side.
    pub(crate) fn dense(isa: Isa, k: usize) -> Depth {
        Depth::of(
            isa,
            &[Segment {
                offset: 0,
                len: k as u32,
            }],
        )
    }

    pub(crate) fn of(isa: Isa, runs: &[Segment]) -> Depth {
        let k: usize = runs.iter().map(|r| r.len as usize).sum();
        let limit = depth_limit(isa);
        let count = k.div_ceil(limit).max(1);
        // Blocks of about the same size, whole multiples of the unrolled loop.
        let size = k.div_ceil(count).next_multiple_of(4) as u32;
        let (mut segments, mut blocks) = (Vec::new(), Vec::new());
        let mut room = size;
        for run in runs {
            let mut run = *run;
            while run.len > 0 {
                if room == 0 {
                    blocks.push(segments.len());
                    room = size;
                }
                let len = run.len.min(room);
                segments.push(Segment {
                    offset: run.offset,
                    len,
                });
                run.offset += len;
                run.len -= len;
                room -= len;
            }
        }
        blocks.push(segments.len());
        let reach = runs
            .iter()
            .map(|r| r.offset as usize + r.len as usize)
            .max()
            .unwrap_or(0);
        Depth {
            segments,
            blocks,
            k,
            reach,
        }
    }

    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// One more than the largest offset of an element of a row.
    pub(crate) fn reach(&self) -> usize {
        self.reach
    }
}

/// Columns of A in a block: a panel of B of that depth takes 16 or 32 KiB.
fn depth_limit(isa: Isa) -> usize {
    if isa.tile_vectors() * isa.lanes() > 16 {
        256
    } else {
        512
    }
}

/// `C = clamp(A B + bias + residual)`, pointers and sizes.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    pub isa: Isa,
    pub a: *const f32,
    pub rows: Rows<'a>,
    pub depth: &'a Depth,
    /// Packed by [`pack`] or [`append`] for `isa`.
    pub b: Packed,
    pub m: usize,
    pub n: usize,
    pub c: *mut f32,
    /// Elements from a row of C to the next.
    pub c_stride: usize,
    /// `n` elements or null.
    pub bias: *const f32,
    /// Laid out as C, or null.
    pub residual: *const f32,
    pub clamp: (f32, f32),
}

// SAFETY: the pointers are used under the contract of `multiply`, which speaks of the memory.
unsafe impl Send for Product<'_> {}
// SAFETY: parts of it are multiplied on several threads, each under the contract of `multiply`; they write different
// parts of C.
unsafe impl Sync for Product<'_> {}

impl Product<'_> {
    /// The part of the product that gives some rows of C; A's rows must be strided.
    fn rows(&self, rows: Range<usize>) -> Self {
        let skip = |p: *const f32, by: usize| {
            if p.is_null() { p } else { p.wrapping_add(by) }
        };
        Product {
            a: self.a.wrapping_add(self.rows.start(rows.start)),
            m: rows.len(),
            c: self.c.wrapping_add(rows.start * self.c_stride),
            residual: skip(self.residual, rows.start * self.c_stride),
            ..*self
        }
    }

    /// The part that gives the columns from `first` on, which begins a panel.
    pub(crate) fn columns(&self, columns: Range<usize>) -> Self {
        let skip = |p: *const f32| {
            if p.is_null() {
                p
            } else {
                p.wrapping_add(columns.start)
            }
        };
        Product {
            b: self.b.skip(columns.start * self.depth.k),
            n: columns.len(),
            c: self.c.wrapping_add(columns.start),
            bias: skip(self.bias),
            residual: skip(self.residual),
            ..*self
        }
    }
}

/// [`multiply`] on several threads: blocks of rows where there are enough of them, else panels.
///
/// # Errors
/// `Aborted` where the run is to stop.
///
/// # Safety
/// As for [`multiply`].
pub(crate) unsafe fn multiply_split(product: &Product, cpu: &CpuRun) -> Result<()> {
    if cpu.threads() == 1 {
        // SAFETY: the product's pointers are good for its rows and columns, as `multiply` demands, too.
        return unsafe { multiply(product, cpu) };
    }
    let cost = |m: usize, n: usize| {
        let weights = product.depth.k.saturating_mul(n);
        let products = product.isa.cost(weights.saturating_mul(m));
        // A core reads about two elements of B from memory in the time of an operation.
        products.max(weights / 2)
    };
    let blocks = product.blocks();
    if matches!(product.rows, Rows::Strided(_)) && blocks >= 4 * cpu.threads() {
        let cost = cost(product.m.div_ceil(blocks), product.n);
        return cpu.split(blocks, cost, |some, cpu| {
            let (first, end) = (
                product.block(some.start).start,
                product.block(some.end).start,
            );
            // SAFETY: a part of the product, whose rows no other part writes.
            unsafe { multiply(&product.rows(first..end), cpu) }
        });
    }
    let panel = product.isa.tile_vectors() * product.isa.lanes();
    let panels = product.n.div_ceil(panel);
    let cost = cost(product.m, panel);
    cpu.split(panels, cost, |some, cpu| {
        let columns = some.start * panel..product.n.min(some.end * panel);
        // SAFETY: a part of the product, whose columns no other part writes.
        unsafe { multiply(&product.columns(columns), cpu) }
    })
}

pub(crate) const NO_CLAMP: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);

/// The bounds that do the work of an activation at the store, and what is left of it for a pass
/// over the finished block.
pub(crate) fn split_activation(activation: Activation) -> ((f32, f32), Activation) {
    match activation {
        Activation::None => (NO_CLAMP, Activation::None),
        Activation::Relu => ((0.0, f32::INFINITY), Activation::None),
        Activation::Clip { min, max } => ((min, max), Activation::None),
        other => (NO_CLAMP, other),
    }
}
