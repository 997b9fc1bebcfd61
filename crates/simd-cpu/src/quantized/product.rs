//! Matrix products of `i16`, in sums of `i32`: tiles over rows of A, which are read where they are,
//! and panels of packed B. Columns of A are multiplied in pairs.

use crate::isa::{Isa, PairTask, Pairs};

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

/// The shape of packed B: panels as wide as a tile; the last has as many vectors as it needs.
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

    /// `i16` that a matrix with `runs` takes.
    pub(super) fn words(self, runs: &[Run]) -> usize {
        2 * depth(runs) * self.n.next_multiple_of(self.lanes)
    }

    /// Packs a matrix: element (k, n) is `weight(k, n)`, rows in the order of the runs.
    pub(super) fn pack(self, runs: &[Run], weight: impl Fn(usize, usize) -> i16, to: &mut [i16]) {
        let width = self.lanes * self.vectors;
        let mut out = to.chunks_exact_mut(2);
        for first in (0..self.n).step_by(width) {
            let columns = (self.n - first).next_multiple_of(self.lanes).min(width);
            let mut row = 0;
            for run in runs {
                for pair in 0..run.pairs() {
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

/// Computes all rows of a product.
///
/// # Safety
/// From each of `starts` on, `a` is valid for reads of all runs, and of one more element where a run
/// is odd; `b` holds `n` columns packed for `isa` and the runs; `bias` is null or valid for `n` reads;
/// `c` is valid for writes of `n` elements at each multiple of `c_stride`, one for each start.
pub(super) unsafe fn multiply(isa: Isa, product: &Product) {
    isa.dispatch_pairs(Multiply(product));
}

/// Exists only under the contract of [`multiply`].
struct Multiply<'a>(&'a Product<'a>);

impl PairTask for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<P: Pairs>(self, p: P) {
        let product = self.0;
        let panel = P::LANES * P::TILE_VECTORS;
        let pairs = depth(product.runs);
        let rows = product.starts.len();
        let tiles = rows.div_ceil(P::TILE_ROWS).max(1);
        let (low, more) = (rows / tiles, rows % tiles);
        for column in (0..product.n).step_by(panel) {
            let vectors = (product.n - column).min(panel).div_ceil(P::LANES);
            let b = product.b.wrapping_add(2 * pairs * column);
            let mut row = 0;
            for t in 0..tiles {
                let height = low + usize::from(t < more);
                macro_rules! of_size {
                    ($vectors:literal: $($rows:literal),*) => {
                        match height {
                            // SAFETY: the contract of `multiply`; rows and columns are inside.
                            $($rows if $rows <= P::TILE_ROWS => unsafe {
                                tile::<P, $rows, $vectors>(p, product, b, row, column)
                            },)*
                            _ => {}
                        }
                    };
                }
                match vectors {
                    1 => of_size!(1: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
                    _ => of_size!(2: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
                }
                row += height;
            }
        }
    }
}

/// `ROWS` rows by `VECTORS` vectors of C.
///
/// # Safety
/// As for [`multiply`]; `b` is the panel that begins with `column`.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
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
        let a = starts.map(|a| a.wrapping_add(run.offset));
        for pair in 0..run.pairs() {
            // SAFETY: the pair is in the run or one element behind it; the panel has as many rows.
            unsafe {
                let mut columns = [p.splat(0); VECTORS];
                for (j, column) in columns.iter_mut().enumerate() {
                    *column = p.load(b.add(2 * j * P::LANES).cast());
                }
                for (a, sums) in a.iter().zip(&mut sums) {
                    let x = p.splat(a.add(2 * pair).cast::<i32>().read_unaligned());
                    for (sum, &column) in sums.iter_mut().zip(&columns) {
                        *sum = p.dot(x, column, *sum);
                    }
                }
                b = b.add(2 * VECTORS * P::LANES);
            }
        }
    }
    for j in 0..VECTORS {
        let first = column + j * P::LANES;
        let count = (product.n - first).min(P::LANES);
        for (i, sums) in sums.iter().enumerate() {
            // SAFETY: `count` columns from `first` on are inside of C and of the bias.
            unsafe {
                let c = product.c.add((row + i) * product.c_stride + first);
                if count == P::LANES {
                    let sum = match product.bias.is_null() {
                        true => sums[j],
                        false => p.add(sums[j], p.load(product.bias.add(first))),
                    };
                    p.store(c, sum);
                } else {
                    let mut whole = [0; 16];
                    p.store(whole.as_mut_ptr(), sums[j]);
                    for (k, sum) in whole.into_iter().take(count).enumerate() {
                        let bias = match product.bias.is_null() {
                            true => 0,
                            false => *product.bias.add(first + k),
                        };
                        *c.add(k) = sum.wrapping_add(bias);
                    }
                }
            }
        }
    }
}
