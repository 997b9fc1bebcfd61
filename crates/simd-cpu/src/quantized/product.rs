//! Matrix products of small integers, in sums of `i32`: tiles over rows of A, which are read where they are, and panels of
//! packed B. Columns of A are multiplied in groups of 32 bits: two `i16`, or four bytes.

use std::array::from_fn;
use std::ops::Range;

use kilim_core::Result;
use kilim_host::{CpuRun, Shared};

use super::weights::Columns;
use crate::isa::{Fours, IntegerTask, Integers, Isa, LINE};
use crate::memory::share;

/// What A and B are made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// `i16`.
    Words,
    /// Bytes: those of B are signed, those of A as [`Fours::signed_data`] says.
    Bytes(Fours),
}

impl Form {
    /// Numbers of a group, those that are multiplied together.
    pub(super) fn group(self) -> usize {
        match self {
            Form::Words => 2,
            Form::Bytes(_) => 4,
        }
    }

    /// Bytes of a number.
    pub(super) fn size(self) -> usize {
        GROUP_BYTES / self.group()
    }
}

/// Bytes of a group of numbers.
const GROUP_BYTES: usize = 4;

/// A run of elements of a row of A, `offset` behind the row's beginning, in groups. Where they do not fill the last group,
/// the rest of it is whatever comes next; its weights are zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    pub offset: usize,
    pub len: usize,
}

/// Groups of all runs.
pub(super) fn depth(runs: &[Run], group: usize) -> usize {
    runs.iter().map(|r| r.len.div_ceil(group)).sum()
}

/// The shape of packed B: panels as wide as a tile or narrower, all about as wide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panels {
    lanes: usize,
    vectors: usize,
    group: usize,
    n: usize,
}

impl Panels {
    pub(super) fn new(isa: Isa, form: Form, n: usize) -> Panels {
        let (lanes, vectors) = isa.integer_sizes();
        Panels {
            lanes,
            vectors,
            group: form.group(),
            n,
        }
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

    /// Bytes that a matrix with `runs` takes.
    pub(super) fn bytes(self, runs: &[Run]) -> usize {
        GROUP_BYTES * depth(runs, self.group) * self.n.next_multiple_of(self.lanes)
    }

    /// Packs a matrix into memory of zeros, its rows in the order of the runs. Row k has the element `place(k)` of each
    /// channel.
    ///
    /// # Errors
    /// `Aborted` where the building is to stop.
    pub(super) fn pack(
        self,
        cpu: &CpuRun,
        isa: Isa,
        runs: &[Run],
        matrix: &Columns,
        place: impl Fn(usize) -> usize + Sync,
        to: &mut [u8],
    ) -> Result<()> {
        let groups = depth(runs, self.group);
        let to = Shared::new(bytemuck::cast_slice_mut::<u8, i32>(to));
        let panels = self.n.div_ceil(self.lanes).div_ceil(self.vectors);
        let cost = groups * self.vectors * self.lanes;
        cpu.split(panels, cost, |some, _| {
            for (first, vectors) in self.each().skip(some.start).take(some.len()) {
                let width = vectors * self.lanes;
                isa.dispatch_integers(Pack {
                    group: self.group,
                    columns: Columns {
                        first: matrix.first + first,
                        count: width.min(self.n - first),
                        ..*matrix
                    },
                    width,
                    runs,
                    place: &place,
                    // SAFETY: panels are disjoint, and each is packed once.
                    to: unsafe { to.part(groups * first, groups * width) },
                });
            }
            Ok(())
        })
    }
}

/// Packs a panel.
struct Pack<'a, P> {
    group: usize,
    columns: Columns<'a>,
    /// Columns with what fills the last vector.
    width: usize,
    runs: &'a [Run],
    place: &'a P,
    to: &'a mut [i32],
}

impl<P: Fn(usize) -> usize> Pack<'_, P> {
    #[inline(always)]
    fn panel<const GROUP: usize>(self) {
        let mut groups = self.to.chunks_exact_mut(self.width);
        let mut row = 0;
        for run in self.runs {
            for (first, to) in (0..run.len).step_by(GROUP).zip(&mut groups) {
                let used = GROUP.min(run.len - first);
                let place = |i: usize| (self.place)(row + first + i.min(used - 1));
                let mask = u32::MAX >> ((GROUP - used) * u32::BITS as usize / GROUP);
                self.columns.write::<GROUP>(from_fn(place), mask, to);
            }
            row += run.len;
        }
    }
}

impl<P: Fn(usize) -> usize> IntegerTask for Pack<'_, P> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<I: Integers>(self, _: I) {
        match self.group {
            2 => self.panel::<2>(),
            _ => self.panel::<4>(),
        }
    }
}

/// What becomes of the sums of each column, in their memory: `float32` of `sum * factor + bias`, both operations rounded.
#[derive(Clone, Copy)]
pub(super) struct Real<'a> {
    pub factors: &'a [f32],
    pub biases: &'a [f32],
}

/// `C = A B + bias + row bias`, pointers and sizes.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    pub form: Form,
    pub a: *const u8,
    /// Where each row of A begins, in elements.
    pub starts: &'a [u32],
    pub runs: &'a [Run],
    /// Packed for the instruction set.
    pub b: *const u8,
    pub n: usize,
    pub c: *mut i32,
    /// Elements from a row of C to the next.
    pub c_stride: usize,
    /// `n` elements or null.
    pub bias: *const i32,
    /// An element for each row or none.
    pub row_bias: &'a [i32],
    /// An element for each column, where C ends in `float32`.
    pub real: Option<Real<'a>>,
}

// SAFETY: the pointers are used under the contract of `multiply`, which speaks of the memory.
unsafe impl Send for Product<'_> {}
// SAFETY: parts of it are multiplied on several threads, each under the contract of `multiply`; they write different
// parts of C.
unsafe impl Sync for Product<'_> {}

/// Computes all rows of a product.
///
/// # Safety
/// From each of `starts` on, `a` is valid for reads of all runs, each to the end of its last group; `b` holds `n` columns
/// packed for `isa`, the form and the runs; `bias` is null or valid for `n` reads; `c` is valid for writes of `n` elements
/// at each multiple of `c_stride`, one for each start.
pub(super) unsafe fn multiply(cpu: &CpuRun, isa: Isa, product: &Product) -> Result<()> {
    // SAFETY: the contract is the same.
    unsafe { multiply_panels(cpu, isa, product, 0..usize::MAX) }
}

/// [`multiply`] for some of the panels, as far as there are any.
///
/// # Safety
/// As for [`multiply`].
unsafe fn multiply_panels(
    cpu: &CpuRun,
    isa: Isa,
    product: &Product,
    panels: Range<usize>,
) -> Result<()> {
    let task = Multiply {
        product,
        cpu,
        panels,
    };
    match product.form {
        Form::Words => isa.dispatch_integers(task),
        Form::Bytes(fours) => fours.dispatch(task),
    }
}

/// [`multiply`] on several threads: blocks of rows where there are many of them, or more than panels. Else panels, and each
/// thread reads its own from memory.
///
/// # Safety
/// As for [`multiply`].
pub(super) unsafe fn multiply_split(cpu: &CpuRun, isa: Isa, product: &Product) -> Result<()> {
    let (lanes, vectors) = isa.integer_sizes();
    let groups = depth(product.runs, product.form.group());
    let panels = product.n.div_ceil(lanes).div_ceil(vectors);
    let rows = product.starts.len();
    let threads = cpu.threads();
    let blocks = rows.div_ceil(BLOCK);
    if blocks >= MANY * threads || blocks > panels {
        // As many for each thread.
        let blocks = blocks.next_multiple_of(threads).min(rows);
        let cost = groups.saturating_mul(rows.div_ceil(blocks) * vectors * panels);
        return cpu.split(blocks, cost, |some, cpu| {
            let (first, end) = (
                share(rows, blocks, some.start).start,
                share(rows, blocks, some.end).start,
            );
            let part = Product {
                c: product.c.wrapping_add(first * product.c_stride),
                row_bias: match product.row_bias {
                    [] => &[],
                    all => &all[first..end],
                },
                starts: &product.starts[first..end],
                ..*product
            };
            // SAFETY: a part of the product, whose rows no other part writes.
            unsafe { multiply(cpu, isa, &part) }
        });
    }
    let cost = groups.saturating_mul(rows * vectors);
    cpu.split(panels, cost, |panels, cpu| {
        // SAFETY: the contract is the same.
        unsafe { multiply_panels(cpu, isa, product, panels) }
    })
}

/// Rows that a thread multiplies together.
const BLOCK: usize = 24;

/// Blocks of each thread that make up for panels which all threads read.
const MANY: usize = 4;

/// Exists only under the contract of [`multiply`].
struct Multiply<'a> {
    product: &'a Product<'a>,
    cpu: &'a CpuRun<'a>,
    /// The panels that are computed, as far as there are any.
    panels: Range<usize>,
}

impl IntegerTask for Multiply<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<I: Integers>(self, v: I) -> Result<()> {
        let Multiply {
            product,
            cpu,
            panels: some,
        } = self;
        let panels = Panels {
            lanes: I::LANES,
            vectors: I::TILE_VECTORS,
            group: I::GROUP,
            n: product.n,
        };
        let groups = depth(product.runs, I::GROUP);
        let rows = product.starts.len();
        for (column, vectors) in panels.each().skip(some.start).take(some.len()) {
            let b = product.b.wrapping_add(GROUP_BYTES * groups * column);
            let tiles = rows.div_ceil(I::tile_rows(vectors));
            let bytes = GROUP_BYTES * groups * vectors * I::LANES;
            let mut next = Next {
                at: b.wrapping_add(bytes),
                step: 0,
            };
            if I::PREFETCHES {
                next.step = bytes.div_ceil((tiles * groups).max(1));
            }
            for t in 0..tiles {
                let part = share(rows, tiles, t);
                // A multiplication of two vectors takes about an operation.
                cpu.spend(part.len() * groups * vectors)?;
                macro_rules! of_size {
                    ($vectors:literal: $($rows:literal),*) => {
                        match part.len() {
                            // SAFETY: the contract of `multiply`; rows and columns are inside.
                            $($rows if $rows <= I::tile_rows($vectors) => unsafe {
                                tile::<I, $rows, $vectors>(v, product, b, part.start, column, next)
                            },)*
                            _ => {}
                        }
                    };
                }
                match vectors {
                    1 => of_size!(1: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
                    2 => of_size!(2: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
                    3 if I::TILE_VECTORS > 2 => of_size!(3: 1, 2, 3, 4),
                    _ => {}
                }
                if let Some(real) = product.real {
                    let columns = (vectors * I::LANES).min(product.n - column);
                    // SAFETY: the tile was computed just before; rows and columns are inside of C.
                    unsafe { turn(real, product, part, column, columns) };
                }
                next.at = next.at.wrapping_add(groups * next.step);
            }
        }
        Ok(())
    }
}

/// What of B comes next. A tile fetches a part of it, a little in each step: it may come from memory, for which the first
/// tile of the panel would wait.
#[derive(Clone, Copy)]
struct Next {
    at: *const u8,
    /// Bytes that are fetched in each step.
    step: usize,
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
unsafe fn tile<I: Integers, const ROWS: usize, const VECTORS: usize>(
    v: I,
    product: &Product,
    mut b: *const u8,
    row: usize,
    column: usize,
    mut next: Next,
) {
    let size = GROUP_BYTES / I::GROUP;
    let mut starts = [product.a; ROWS];
    for (start, &offset) in starts.iter_mut().zip(&product.starts[row..]) {
        *start = start.wrapping_add(offset as usize * size);
    }
    let mut sums = [[v.splat(0); VECTORS]; ROWS];
    for run in product.runs {
        let mut a = starts.map(|a| a.wrapping_add(run.offset * size));
        // One step at a time: the compiler would mix two, for which browsers lack registers.
        for _ in 0..run.len.div_ceil(I::GROUP) {
            // SAFETY: the group is in the run or ends behind it; the panel has as many rows.
            unsafe { step(v, &a, b, &mut sums) }
            v.prefetch(next.at);
            if I::PREFETCHES && GROUP_BYTES * VECTORS * I::LANES > LINE {
                // A single tile of a panel is to fetch as much as it reads.
                v.prefetch(next.at.wrapping_add(LINE));
            }
            next.at = next.at.wrapping_add(next.step);
            a = a.map(|a| a.wrapping_add(GROUP_BYTES));
            b = b.wrapping_add(GROUP_BYTES * VECTORS * I::LANES);
        }
    }
    if !product.row_bias.is_empty() {
        for (sums, &bias) in sums.iter_mut().zip(&product.row_bias[row..]) {
            for sum in sums {
                *sum = v.add(*sum, v.splat(bias));
            }
        }
    }
    let corner = row * product.c_stride + column;
    // SAFETY: the columns are inside of C and of the bias.
    unsafe {
        if product.n - column >= VECTORS * I::LANES {
            let mut bias = [v.splat(0); VECTORS];
            if !product.bias.is_null() {
                for j in 0..VECTORS {
                    bias[j] = v.load(product.bias.add(column + j * I::LANES));
                }
            }
            for i in 0..ROWS {
                let c = product.c.add(corner + i * product.c_stride);
                for j in 0..VECTORS {
                    v.store(c.add(j * I::LANES), v.add(sums[i][j], bias[j]));
                }
            }
        } else {
            // A copy: what is passed by address does not stay in registers.
            let rest = sums;
            edge(v, product, corner, column, &rest);
        }
    }
}

/// Turns the sums of a tile into real numbers.
///
/// # Safety
/// C is valid for reads and writes of the rows and of `count` columns from `column` on.
// Written without vectors: the compiler makes them for each instruction set.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
unsafe fn turn(real: Real, product: &Product, rows: Range<usize>, column: usize, count: usize) {
    let factors = &real.factors[column..][..count];
    let biases = &real.biases[column..][..count];
    for row in rows {
        let corner = row * product.c_stride + column;
        // SAFETY: the contract is the same; nobody else has these columns of the row.
        let sums = unsafe { std::slice::from_raw_parts_mut(product.c.add(corner), count) };
        for (sum, (factor, bias)) in sums.iter_mut().zip(factors.iter().zip(biases)) {
            *sum = (*sum as f32 * factor + bias).to_bits() as i32;
        }
    }
}

/// Adds the products of a group of each row and the columns.
///
/// # Safety
/// A group is at each of `a`, `VECTORS` vectors of them at `b`.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "an index counts several arrays, all unrolled"
)]
unsafe fn step<I: Integers, const ROWS: usize, const VECTORS: usize>(
    v: I,
    a: &[*const u8; ROWS],
    b: *const u8,
    sums: &mut [[I::V; VECTORS]; ROWS],
) {
    let mut columns = [v.splat(0); VECTORS];
    for j in 0..VECTORS {
        // SAFETY: `VECTORS` vectors of groups are at `b`.
        columns[j] = unsafe { v.load(b.add(GROUP_BYTES * j * I::LANES).cast()) };
    }
    for i in 0..ROWS {
        // SAFETY: a group is at each of `a`.
        let x = v.splat(unsafe { a[i].cast::<i32>().read_unaligned() });
        for j in 0..VECTORS {
            sums[i][j] = v.dot(x, columns[j], sums[i][j]);
        }
    }
}

/// Stores a tile that lacks columns, of any height.
///
/// # Safety
/// The columns from `column` on are inside of the bias, and of C, where the tile begins at `corner`.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
unsafe fn edge<I: Integers, const VECTORS: usize>(
    v: I,
    product: &Product,
    corner: usize,
    column: usize,
    sums: &[[I::V; VECTORS]],
) {
    let count = product.n - column;
    for (i, sums) in sums.iter().enumerate() {
        let mut row = [0; 32];
        for (j, &sum) in sums.iter().enumerate() {
            // SAFETY: a row of a tile has no more than 32 elements.
            unsafe { v.store(row.as_mut_ptr().add(j * I::LANES), sum) };
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
