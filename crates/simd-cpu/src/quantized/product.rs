//! Matrix products of `i16`, in sums of `i32`: tiles over rows of A, which are read where they are,
//! and panels of packed B. Columns of A are multiplied in pairs.

use std::ops::Range;

use kilim_core::Result;
use kilim_host::CpuRun;

use crate::isa::{Isa, PairTask, Pairs};
use crate::memory::share;

/// A run of elements of a row of A, `offset` behind the row's beginning, in pairs. Where the run is
/// odd, the last pair's second element is whatever comes next; its weights are zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    pub offset: usize,
    pub len: usize,
}

impl Run {
    pub(super) fn pairs(self) -> usize {
        self.len.div_ceil(2)
    }
}

/// Pairs of all runs.
pub(super) fn depth(runs: &[Run]) -> usize {
    runs.iter().map(|r| r.pairs()).sum()
}

/// The shape of packed B: panels as wide as a tile or narrower, all about as wide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panels {
    lanes: usize,
    vectors: usize,
    n: usize,
}

impl Panels {
    pub(super) fn new(isa: Isa, n: usize) -> Panels {
        let (lanes, vectors) = isa.pair_sizes();
        Panels { lanes, vectors, n }
    }

    /// The first column of each panel, and its vectors.
    fn each(self) -> impl Iterator<Item = (usize, usize)> {
        let vectors = self.n.div_ceil(self.lanes);
        let panels = vectors.div_ceil(self.vectors);
        (0..panels).map(move |i| {
            let part = share(vectors, panels, i);
            (part.start * self.lanes, part.len())
        })
    }

    /// `i16` that a matrix with `runs` takes.
    pub(super) fn words(self, runs: &[Run]) -> usize {
        2 * depth(runs) * self.n.next_multiple_of(self.lanes)
    }

    /// Packs a matrix: element (k, n) is `weight(k, n)`, rows in the order of the runs.
    ///
    /// # Errors
    /// `Aborted` where the building is to stop.
    pub(super) fn pack(
        self,
        cpu: &CpuRun,
        runs: &[Run],
        weight: impl Fn(usize, usize) -> i16,
        to: &mut [i16],
    ) -> Result<()> {
        let mut out = to.chunks_exact_mut(2);
        for (first, vectors) in self.each() {
            let columns = vectors * self.lanes;
            let mut row = 0;
            for run in runs {
                for pair in 0..run.pairs() {
                    cpu.spend(4 * columns)?;
                    for (n, out) in (first..first + columns).zip(&mut out) {
                        let of = |k: usize| match n < self.n && k < run.len {
                            true => weight(row + k, n),
                            false => 0,
                        };
                        out.copy_from_slice(&[of(2 * pair), of(2 * pair + 1)]);
                    }
                }
                row += run.len;
            }
        }
        Ok(())
    }
}

/// `C = A B + bias`, pointers and sizes.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    pub a: *const i16,
    /// Where each row of A begins.
    pub starts: &'a [u32],
    pub runs: &'a [Run],
    /// Packed for the instruction set.
    pub b: *const i16,
    pub n: usize,
    pub c: *mut i32,
    /// Elements from a row of C to the next.
    pub c_stride: usize,
    /// `n` elements or null.
    pub bias: *const i32,
}

// SAFETY: the pointers are used under the contract of `multiply`, which speaks of the memory.
unsafe impl Send for Product<'_> {}
// SAFETY: parts of it are multiplied on several threads, each under the contract of `multiply`; they write different
// parts of C.
unsafe impl Sync for Product<'_> {}

/// Computes all rows of a product.
///
/// # Safety
/// From each of `starts` on, `a` is valid for reads of all runs, and of one more element where a run
/// is odd; `b` holds `n` columns packed for `isa` and the runs; `bias` is null or valid for `n` reads;
/// `c` is valid for writes of `n` elements at each multiple of `c_stride`, one for each start.
pub(super) unsafe fn multiply(cpu: &CpuRun, isa: Isa, product: &Product) -> Result<()> {
    isa.dispatch_pairs(Multiply {
        product,
        cpu,
        panels: 0..usize::MAX,
    })
}

/// [`multiply`] on several threads: blocks of rows where there are enough of them, else panels.
///
/// # Safety
/// As for [`multiply`].
pub(super) unsafe fn multiply_split(cpu: &CpuRun, isa: Isa, product: &Product) -> Result<()> {
    let (lanes, vectors) = isa.pair_sizes();
    let pairs = depth(product.runs);
    let panels = product.n.div_ceil(lanes).div_ceil(vectors);
    let rows = product.starts.len();
    let blocks = rows.div_ceil(BLOCK);
    if blocks >= cpu.threads() {
        let cost = pairs.saturating_mul(BLOCK * vectors * panels);
        return cpu.split(blocks, cost, |some, cpu| {
            let rows = some.start * BLOCK..rows.min(some.end * BLOCK);
            let part = Product {
                c: product.c.wrapping_add(rows.start * product.c_stride),
                starts: &product.starts[rows],
                ..*product
            };
            // SAFETY: a part of the product, whose rows no other part writes.
            unsafe { multiply(cpu, isa, &part) }
        });
    }
    let cost = pairs.saturating_mul(rows * vectors);
    cpu.split(panels, cost, |panels, cpu| {
        isa.dispatch_pairs(Multiply {
            product,
            cpu,
            panels,
        })
    })
}

/// Rows that a thread multiplies together.
const BLOCK: usize = 24;

/// Exists only under the contract of [`multiply`].
struct Multiply<'a> {
    product: &'a Product<'a>,
    cpu: &'a CpuRun<'a>,
    /// The panels that are computed, as far as there are any.
    panels: Range<usize>,
}

impl PairTask for Multiply<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<P: Pairs>(self, p: P) -> Result<()> {
        let Multiply {
            product,
            cpu,
            panels: some,
        } = self;
        let panels = Panels {
            lanes: P::LANES,
            vectors: P::TILE_VECTORS,
            n: product.n,
        };
        let pairs = depth(product.runs);
        let rows = product.starts.len();
        for (column, vectors) in panels.each().skip(some.start).take(some.len()) {
            let b = product.b.wrapping_add(2 * pairs * column);
            let tiles = rows.div_ceil(P::tile_rows(vectors));
            for t in 0..tiles {
                let part = share(rows, tiles, t);
                // A multiplication of two vectors takes about an operation.
                cpu.spend(part.len() * pairs * vectors)?;
                macro_rules! of_size {
                    ($vectors:literal: $($rows:literal),*) => {
                        match part.len() {
                            // SAFETY: the contract of `multiply`; rows and columns are inside.
                            $($rows if $rows <= P::tile_rows($vectors) => unsafe {
                                tile::<P, $rows, $vectors>(p, product, b, part.start, column)
                            },)*
                            _ => {}
                        }
                    };
                }
                match vectors {
                    1 => of_size!(1: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
                    2 => of_size!(2: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
                    3 if P::TILE_VECTORS > 2 => of_size!(3: 1, 2, 3, 4),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// `ROWS` rows by `VECTORS` vectors of C.
///
/// # Safety
/// As for [`multiply`]; `b` is the panel that begins with `column`.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
#[expect(
    clippy::needless_range_loop,
    reason = "an index counts several arrays, all unrolled"
)]
unsafe fn tile<P: Pairs, const ROWS: usize, const VECTORS: usize>(
    p: P,
    product: &Product,
    mut b: *const i16,
    row: usize,
    column: usize,
) {
    let mut starts = [product.a; ROWS];
    for (start, &offset) in starts.iter_mut().zip(&product.starts[row..]) {
        *start = start.wrapping_add(offset as usize);
    }
    let mut sums = [[p.splat(0); VECTORS]; ROWS];
    for run in product.runs {
        let mut a = starts.map(|a| a.wrapping_add(run.offset));
        // One step at a time: the compiler would mix two, for which browsers lack registers.
        for _ in 0..run.pairs() {
            // SAFETY: the pair is in the run or one element behind it; the panel has as many rows.
            unsafe { step(p, &a, b, &mut sums) }
            a = a.map(|a| a.wrapping_add(2));
            b = b.wrapping_add(2 * VECTORS * P::LANES);
        }
    }
    let corner = row * product.c_stride + column;
    // SAFETY: the columns are inside of C and of the bias.
    unsafe {
        if product.n - column >= VECTORS * P::LANES {
            let mut bias = [p.splat(0); VECTORS];
            if !product.bias.is_null() {
                for j in 0..VECTORS {
                    bias[j] = p.load(product.bias.add(column + j * P::LANES));
                }
            }
            for i in 0..ROWS {
                let c = product.c.add(corner + i * product.c_stride);
                for j in 0..VECTORS {
                    p.store(c.add(j * P::LANES), p.add(sums[i][j], bias[j]));
                }
            }
        } else {
            // A copy: what is passed by address does not stay in registers.
            let rest = sums;
            edge(p, product, corner, column, &rest);
        }
    }
}

/// Adds the products of a pair of each row and the columns.
///
/// # Safety
/// A pair is at each of `a`, `VECTORS` vectors of them at `b`.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "an index counts several arrays, all unrolled"
)]
unsafe fn step<P: Pairs, const ROWS: usize, const VECTORS: usize>(
    p: P,
    a: &[*const i16; ROWS],
    b: *const i16,
    sums: &mut [[P::V; VECTORS]; ROWS],
) {
    let mut columns = [p.splat(0); VECTORS];
    for j in 0..VECTORS {
        // SAFETY: `VECTORS` vectors of pairs are at `b`.
        columns[j] = unsafe { p.load(b.add(2 * j * P::LANES).cast()) };
    }
    for i in 0..ROWS {
        // SAFETY: a pair of `i16` is at each of `a`.
        let x = p.splat(unsafe { a[i].cast::<i32>().read_unaligned() });
        for j in 0..VECTORS {
            sums[i][j] = p.dot(x, columns[j], sums[i][j]);
        }
    }
}

/// Stores a tile that lacks columns, of any height.
///
/// # Safety
/// The columns from `column` on are inside of the bias, and of C, where the tile begins at `corner`.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
unsafe fn edge<P: Pairs, const VECTORS: usize>(
    p: P,
    product: &Product,
    corner: usize,
    column: usize,
    sums: &[[P::V; VECTORS]],
) {
    let count = product.n - column;
    for (i, sums) in sums.iter().enumerate() {
        let mut row = [0; 32];
        for (j, &sum) in sums.iter().enumerate() {
            // SAFETY: a row of a tile has no more than 32 elements.
            unsafe { p.store(row.as_mut_ptr().add(j * P::LANES), sum) };
        }
        for (k, &sum) in row.iter().take(count).enumerate() {
            // SAFETY: `column + k` is below the columns of the bias and of C, and C has the tile's rows from `corner`
            // on.
            unsafe {
                let bias = match product.bias.is_null() {
                    true => 0,
                    false => *product.bias.add(column + k),
                };
                let c = product.c.add(corner + i * product.c_stride + k);
                *c = sum.wrapping_add(bias);
            }
        }
    }
}
