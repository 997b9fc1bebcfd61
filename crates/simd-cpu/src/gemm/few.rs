//! Products of a few rows of A with a B that is read where it lies, each element once for three rows: packing B takes as
//! long as a dozen rows.

use std::ops::Range;

use crate::isa::{Isa, Simd, Task, read, write};

/// Rows of A that are multiplied together.
const ROWS: usize = 3;
/// Rows of a transposed B that are multiplied together.
const COLUMNS: usize = 4;
/// Vectors of a row of B that are read together.
const VECTORS: usize = 4;
/// Rows of B that are added before the next columns: they lie on as many pages as a core finds at once.
const DEPTH: usize = 64;

/// `m` rows of A, `k` by `n` elements of B, and `m` rows of C. Strides are elements from a row to the next.
#[derive(Clone, Copy)]
pub(crate) struct FewRows<'a> {
    pub a: &'a [f32],
    pub a_stride: usize,
    pub b: &'a [f32],
    pub b_stride: usize,
    pub c: *mut f32,
    pub c_stride: usize,
    pub m: usize,
    pub k: usize,
    pub n: usize,
}

// SAFETY: the pointer is used under the contracts of `multiply_transposed` and `add`, which speak of the memory.
unsafe impl Send for FewRows<'_> {}
// SAFETY: parts of it are multiplied on several threads, each under the same contracts; they write different parts of C.
unsafe impl Sync for FewRows<'_> {}

impl FewRows<'_> {
    /// The part that gives some columns of C; `transposed` says that these are rows of B.
    pub(crate) fn columns(&self, columns: Range<usize>, transposed: bool) -> Self {
        let b = columns.start * if transposed { self.b_stride } else { 1 };
        FewRows {
            b: &self.b[b..],
            c: self.c.wrapping_add(columns.start),
            n: columns.len(),
            ..*self
        }
    }

    /// `C = A Bᵀ`: B has `n` rows of `k` elements.
    ///
    /// # Panics
    /// Where A or B has fewer elements.
    ///
    /// # Safety
    /// `c` is valid for writes of `n` elements in each of `m` rows, which nothing else uses meanwhile.
    pub(crate) unsafe fn multiply_transposed(self, isa: Isa) {
        self.holds(self.n, self.k);
        isa.dispatch(Dots(self));
    }

    /// `C += A B`: B has `k` rows of `n` elements.
    ///
    /// # Panics
    /// Where A or B has fewer elements.
    ///
    /// # Safety
    /// `c` is valid for reads and writes of `n` elements in each of `m` rows, which nothing else uses meanwhile.
    pub(crate) unsafe fn add(self, isa: Isa) {
        self.holds(self.k, self.n);
        isa.dispatch(Sums(self));
    }

    fn holds(&self, rows: usize, columns: usize) {
        let fit = |data: &[f32], rows: usize, stride: usize, columns: usize| {
            rows == 0
                || (rows - 1)
                    .checked_mul(stride)
                    .and_then(|start| data.len().checked_sub(start))
                    .is_some_and(|rest| columns <= rest)
        };
        assert!(fit(self.a, self.m, self.a_stride, self.k));
        assert!(fit(self.b, rows, self.b_stride, columns));
    }

    fn a_row(&self, row: usize) -> *const f32 {
        self.a.as_ptr().wrapping_add(row * self.a_stride)
    }

    fn b_row(&self, row: usize) -> *const f32 {
        self.b.as_ptr().wrapping_add(row * self.b_stride)
    }

    fn c_row(&self, row: usize) -> *mut f32 {
        self.c.wrapping_add(row * self.c_stride)
    }
}

/// Made by [`FewRows::multiply_transposed`] alone, after its check.
struct Dots<'a>(FewRows<'a>);

impl Task for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let whole = self.0.n - self.0.n % COLUMNS;
        for column in (0..whole).step_by(COLUMNS) {
            self.columns::<S, COLUMNS>(s, column);
        }
        for column in whole..self.0.n {
            self.columns::<S, 1>(s, column);
        }
    }
}

impl Dots<'_> {
    /// `N` columns of C from `column` on.
    #[inline(always)]
    fn columns<S: Simd, const N: usize>(&self, s: S, column: usize) {
        for row in (0..self.0.m).step_by(ROWS) {
            match self.0.m - row {
                1 => self.tile::<S, 1, N>(s, row, column),
                2 => self.tile::<S, 2, N>(s, row, column),
                _ => self.tile::<S, ROWS, N>(s, row, column),
            }
        }
    }

    /// `M` rows by `N` columns of C.
    #[inline(always)]
    fn tile<S: Simd, const M: usize, const N: usize>(&self, s: S, row: usize, column: usize) {
        let FewRows {
            a_stride,
            b_stride,
            k,
            ..
        } = self.0;
        let (a, b) = (self.0.a_row(row), self.0.b_row(column));
        let whole = k - k % S::LANES;
        let mut sums = [[s.splat(0.0); N]; M];
        macro_rules! add {
            ($full:literal, $at:expr, $count:expr) => {
                for n in 0..N {
                    // SAFETY: `$count` elements from `$at` on are inside of a row of B, whose rows were counted.
                    let b = unsafe { read::<S, $full>(s, b.add(n * b_stride + $at), $count) };
                    for m in 0..M {
                        // SAFETY: `$count` elements from `$at` on are inside of a row of A, whose rows were counted.
                        let a = unsafe { read::<S, $full>(s, a.add(m * a_stride + $at), $count) };
                        sums[m][n] = s.fma(a, b, sums[m][n]);
                    }
                }
            };
        }
        for at in (0..whole).step_by(S::LANES) {
            add!(true, at, S::LANES);
        }
        if whole < k {
            add!(false, whole, k - whole);
        }
        for (m, sums) in sums.into_iter().enumerate() {
            let c = self.0.c_row(row + m);
            for (n, sum) in sums.into_iter().enumerate() {
                // SAFETY: the row and the column are C's.
                unsafe { c.add(column + n).write(s.sum(sum)) };
            }
        }
    }
}

/// Made by [`FewRows::add`] alone, after its check.
struct Sums<'a>(FewRows<'a>);

impl Task for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let FewRows { k, n, .. } = self.0;
        for first in (0..k).step_by(DEPTH) {
            let depth = first..k.min(first + DEPTH);
            let mut column = 0;
            while n - column >= VECTORS * S::LANES {
                self.columns::<S, VECTORS, true>(s, column, depth.clone());
                column += VECTORS * S::LANES;
            }
            while n - column >= S::LANES {
                self.columns::<S, 1, true>(s, column, depth.clone());
                column += S::LANES;
            }
            if column < n {
                self.columns::<S, 1, false>(s, column, depth);
            }
        }
    }
}

impl Sums<'_> {
    /// `V` vectors of columns, or where these are not `FULL` what is left of one.
    #[inline(always)]
    fn columns<S: Simd, const V: usize, const FULL: bool>(
        &self,
        s: S,
        column: usize,
        depth: Range<usize>,
    ) {
        for row in (0..self.0.m).step_by(ROWS) {
            let depth = depth.clone();
            match self.0.m - row {
                1 => self.tile::<S, 1, V, FULL>(s, row, column, depth),
                2 => self.tile::<S, 2, V, FULL>(s, row, column, depth),
                _ => self.tile::<S, ROWS, V, FULL>(s, row, column, depth),
            }
        }
    }

    /// The columns of `M` rows.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "an index counts several arrays, all unrolled"
    )]
    fn tile<S: Simd, const M: usize, const V: usize, const FULL: bool>(
        &self,
        s: S,
        row: usize,
        column: usize,
        depth: Range<usize>,
    ) {
        let FewRows {
            a_stride,
            b_stride,
            c_stride,
            n,
            ..
        } = self.0;
        let count = if FULL { S::LANES } else { n - column };
        let last = column + (V - 1) * S::LANES;
        assert!(
            count <= S::LANES && last + count <= n && row + M <= self.0.m && depth.end <= self.0.k
        );
        let (a, b) = (self.0.a_row(row), self.0.b_row(0).wrapping_add(column));
        let c = self.0.c_row(row).wrapping_add(column);
        let mut sums = [[s.splat(0.0); V]; M];
        // SAFETY: `V - 1` vectors and `count` elements from `column` on are inside of each row of B and of C, and a
        // row of A has an element for each row of B. The rows were counted.
        unsafe {
            for m in 0..M {
                for v in 0..V {
                    sums[m][v] = read::<S, FULL>(s, c.add(m * c_stride + v * S::LANES), count);
                }
            }
            for x in depth {
                let mut values = [s.splat(0.0); V];
                for v in 0..V {
                    values[v] = read::<S, FULL>(s, b.add(x * b_stride + v * S::LANES), count);
                }
                for m in 0..M {
                    let factor = s.splat(*a.add(m * a_stride + x));
                    for v in 0..V {
                        sums[m][v] = s.fma(factor, values[v], sums[m][v]);
                    }
                }
            }
            for m in 0..M {
                for v in 0..V {
                    write::<S, FULL>(s, c.add(m * c_stride + v * S::LANES), sums[m][v], count);
                }
            }
        }
    }
}
