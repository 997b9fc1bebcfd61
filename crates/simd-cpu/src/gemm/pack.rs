//! Packing B in panels.

use std::mem::MaybeUninit;
use std::ops::Range;

use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Result, Tensor};
use kilim_host::{CpuRun, Shared};

use super::Form;
use super::reading::{COLUMN_BLOCK, Packable, Reading};
use crate::isa::Isa;

/// The shape of packed B: panels as wide as a tile; the last has as many vectors as it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels {
    lanes: usize,
    vectors: usize,
    n: usize,
}

impl Panels {
    pub(crate) fn new(isa: Isa, n: usize) -> Panels {
        Panels {
            lanes: isa.lanes(),
            vectors: isa.tile_vectors(),
            n,
        }
    }

    /// Columns with the padding.
    pub(crate) fn width(self) -> usize {
        self.n.next_multiple_of(self.lanes)
    }

    /// Elements that `k` rows take.
    pub(crate) fn elements(self, k: usize) -> usize {
        k.saturating_mul(self.width())
    }

    /// The number of panels.
    pub(crate) fn count(self) -> usize {
        self.width().div_ceil(self.vectors * self.lanes)
    }

    /// Operations that packing a panel takes, about.
    pub(crate) fn cost(self, k: usize) -> usize {
        k.saturating_mul(self.vectors * self.lanes)
    }

    /// First column and columns with padding of each panel.
    pub(crate) fn each(self) -> impl Iterator<Item = (usize, usize)> {
        let (wide, width) = (self.vectors * self.lanes, self.width());
        (0..width)
            .step_by(wide)
            .map(move |first| (first, wide.min(width - first)))
    }
}

/// Where the rows of a matrix begin in its source: `inner` of them, `step` apart, from each start on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowStarts<'a> {
    pub starts: &'a [usize],
    pub inner: usize,
    pub step: usize,
}

impl RowStarts<'static> {
    /// `rows` rows, `step` elements apart.
    pub(crate) fn even(rows: usize, step: usize) -> Self {
        RowStarts {
            starts: &[0],
            inner: rows,
            step,
        }
    }
}

/// How a matrix that is to be packed lies in its source. Row `outer * inner + i`, column n is at
/// `starts[outer] + i * step + n * column_stride`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub rows: RowStarts<'a>,
    pub column_stride: usize,
    pub reading: Reading,
}

/// Rows that are read together: what some cache lines of a column hold is used up before the next column.
const ROW_BLOCK: usize = 64;

/// Writes a matrix in panels.
///
/// # Errors
/// `Aborted` where the run is to stop.
pub(crate) fn pack(
    cpu: &CpuRun,
    panels: Panels,
    matrix: Matrix,
    source: &[f32],
    packed: &mut [f32],
) -> Result<()> {
    let k = matrix.k();
    for (first, width) in panels.each() {
        let used = width.min(panels.n - first);
        let from = &source[first * matrix.column_stride..];
        matrix.panel(
            cpu,
            from,
            used,
            width,
            &mut packed[first * k..][..width * k],
        )?;
    }
    Ok(())
}

/// Appends a matrix in panels within the capacity, so that new memory is written once, not cleared before.
/// The source begins at element `start` of a constant of the form's type, as [`Form::of`] gives it; the columns of a panel
/// are computed when it is their turn.
///
/// # Errors
/// `Limit` where there is no memory for the columns of a panel, `Aborted` where the building is to stop.
pub(crate) fn append(
    cpu: &CpuRun,
    panels: Panels,
    matrix: Matrix,
    (form, constant): (Form, &Tensor),
    start: usize,
    packed: &mut AlignedBytes,
) -> Result<()> {
    let matrix = Matrix {
        reading: matrix.reading.of(form),
        ..matrix
    };
    match form {
        Form::Float32 => append_of::<f32>(cpu, panels, matrix, constant, start, packed),
        Form::Float16 | Form::BFloat16 => {
            let bits = constant.reinterpreted(DType::U16)?;
            append_of::<u16>(cpu, panels, matrix, &bits, start, packed)
        }
    }
}

/// Elements of the source that are read at a time, unless a row or the panels of all threads have more. Who builds reads them, since a file may be its own
/// alone, and all threads pack them.
const TOGETHER: usize = 1 << 18;

fn append_of<T: Packable>(
    cpu: &CpuRun,
    panels: Panels,
    matrix: Matrix,
    constant: &Tensor,
    start: usize,
    packed: &mut AlignedBytes,
) -> Result<()> {
    if matrix.lies_in_rows() {
        return append_rows::<T>(cpu, panels, matrix, constant, start, packed);
    }
    let k = matrix.k();
    if k == 0 {
        return Ok(());
    }
    let size = panels.elements(k);
    if matrix.column_bound() > matrix.column_stride {
        // Every panel reads all of the source.
        constant.read_on(cpu)?;
    }
    let to = Shared::new(&mut packed.spare::<T>()[..size]);
    let mut room = Vec::new();
    let together = (TOGETHER / panels.cost(k).max(1)).max(cpu.threads());
    for group in (0..panels.count()).step_by(together) {
        let count = together.min(panels.count() - group);
        let wide = panels.vectors * panels.lanes;
        let columns = group * wide..panels.n.min((group + count) * wide);
        let from = start + columns.start * matrix.column_stride;
        let read = from..from + matrix.extent(columns.len());
        let source = constant.run::<T>(cpu, read, &mut room)?;
        cpu.split(count, panels.cost(k), |some, _| {
            for (first, width) in panels.each().skip(group + some.start).take(some.len()) {
                let used = width.min(panels.n - first);
                // SAFETY: panels are disjoint, and each is packed once.
                let to = unsafe { to.part(first * k, width * k) };
                let from = (first - columns.start) * matrix.column_stride;
                matrix.write_panel(&source[from..], used, width, to);
            }
            Ok(())
        })?;
    }
    // SAFETY: all panels were written.
    unsafe { packed.assume_init(size * size_of::<T>()) }
    Ok(())
}

/// Does the work of [`append`] on a matrix that lies row by row: every panel has elements of each row, so that all panels are written
/// together, and the source need not be in memory as a whole.
fn append_rows<T: Packable>(
    cpu: &CpuRun,
    panels: Panels,
    matrix: Matrix,
    constant: &Tensor,
    start: usize,
    packed: &mut AlignedBytes,
) -> Result<()> {
    let (k, step) = (matrix.k(), matrix.rows.step);
    let size = panels.elements(k);
    let to = Shared::new(&mut packed.spare::<T>()[..size]);
    let together = (TOGETHER / step / ROW_BLOCK).max(1) * ROW_BLOCK;
    let cost = ROW_BLOCK.saturating_mul(panels.width());
    let rows = |count: usize| Matrix {
        rows: RowStarts::even(count, step),
        ..matrix
    };
    let mut room = Vec::new();
    for group in (0..k).step_by(together) {
        let count = together.min(k - group);
        let from = start + group * step;
        let read = from..from + rows(count).extent(panels.n);
        let source = constant.run::<T>(cpu, read, &mut room)?;
        cpu.split(count.div_ceil(ROW_BLOCK), cost, |blocks, _| {
            let behind = blocks.start * ROW_BLOCK;
            let count = count.min(blocks.end * ROW_BLOCK) - behind;
            for (first, width) in panels.each() {
                let used = width.min(panels.n - first);
                // SAFETY: panels are disjoint, rows of a panel are, too, and each is packed once.
                let to = unsafe { to.part(first * k + (group + behind) * width, count * width) };
                rows(count).write_panel(&source[behind * step + first..], used, width, to);
            }
            Ok(())
        })?;
    }
    // SAFETY: all rows of every panel were written.
    unsafe { packed.assume_init(size * size_of::<T>()) }
    Ok(())
}

impl Matrix<'_> {
    /// Whether rows lie together, one behind the other.
    fn lies_in_rows(&self) -> bool {
        self.column_stride == 1 && self.rows.starts == [0] && self.rows.step > 0
    }

    fn k(&self) -> usize {
        self.rows.starts.len() * self.rows.inner
    }

    /// Elements from a column's first to its last.
    fn column_bound(&self) -> usize {
        let RowStarts {
            starts,
            inner,
            step,
        } = self.rows;
        let last = starts.iter().max().zip(inner.checked_sub(1));
        last.map_or(0, |(start, before)| start + before * step + 1)
    }

    /// Elements from the first to the last of some columns.
    fn extent(&self, columns: usize) -> usize {
        let before = columns.saturating_sub(1) * self.column_stride;
        match self.column_bound() {
            0 => 0,
            bound => before + bound,
        }
    }

    /// Writes the first `used` columns of a source in rows of `width` elements.
    ///
    /// # Errors
    /// `Aborted` where the work is to stop.
    pub(crate) fn panel(
        &self,
        cpu: &CpuRun,
        source: &[f32],
        used: usize,
        width: usize,
        panel: &mut [f32],
    ) -> Result<()> {
        cpu.spend(panel.len())?;
        let (start, len) = (panel.as_mut_ptr(), panel.len());
        // SAFETY: it is the same memory, and nothing but numbers is written to it.
        let panel = unsafe { std::slice::from_raw_parts_mut(start.cast(), len) };
        self.write_panel(source, used, width, panel);
        Ok(())
    }

    /// Writes the first `used` columns of a source to memory that nobody has written: all of it is.
    ///
    /// # Panics
    /// Where the panel has another size than the rows, or the source ends before them.
    #[inline(never)]
    fn write_panel<T: Packable>(
        &self,
        source: &[T],
        used: usize,
        width: usize,
        panel: &mut [MaybeUninit<T>],
    ) {
        let RowStarts {
            starts,
            inner,
            step,
        } = self.rows;
        assert!(used <= width && panel.len() == width * self.k());
        assert!(source.len() >= self.extent(used));
        for i in (0..inner).step_by(ROW_BLOCK) {
            let count = ROW_BLOCK.min(inner - i);
            for (outer, start) in starts.iter().enumerate() {
                let to = &mut panel[(outer * inner + i) * width..][..count * width];
                let from = &source[start + i * step..];
                match (self.column_stride, step) {
                    (1, _) => self.lines(from, used, width, to),
                    (_, 1) => self.turned(from, used, width, to),
                    _ => self.strided(from, 0..used, width, to),
                }
                if used < width {
                    for row in to.chunks_exact_mut(width) {
                        row[used..].fill(MaybeUninit::new(T::zeroed()));
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn read<T: Packable, const N: usize>(&self, values: [T; N]) -> [MaybeUninit<T>; N] {
        values.map(|x| MaybeUninit::new(x.read(self.reading)))
    }

    /// Rows lie together.
    fn lines<T: Packable>(&self, from: &[T], used: usize, width: usize, to: &mut [MaybeUninit<T>]) {
        for (row, to) in to.chunks_exact_mut(width).enumerate() {
            let from = &from[row * self.rows.step..][..used];
            for (x, to) in from.iter().zip(to) {
                to.write(x.read(self.reading));
            }
        }
    }

    /// Columns lie together.
    fn turned<T: Packable>(
        &self,
        from: &[T],
        used: usize,
        width: usize,
        to: &mut [MaybeUninit<T>],
    ) {
        let count = to.len() / width;
        let whole = used - used % COLUMN_BLOCK;
        if !count.is_multiple_of(COLUMN_BLOCK) {
            return self.strided(from, 0..used, width, to);
        }
        for n in (0..whole).step_by(COLUMN_BLOCK) {
            let [a, b, c, d] = std::array::from_fn(|j| {
                let column = &from[(n + j) * self.column_stride..][..count];
                column.as_chunks::<COLUMN_BLOCK>().0
            });
            let rows = to.chunks_exact_mut(COLUMN_BLOCK * width);
            for ((((rows, a), b), c), d) in rows.zip(a).zip(b).zip(c).zip(d) {
                let square = T::turn([a, b, c, d]);
                for (row, line) in rows.chunks_exact_mut(width).zip(square) {
                    row[n..n + COLUMN_BLOCK].copy_from_slice(&self.read(line));
                }
            }
        }
        self.strided(from, whole..used, width, to);
    }

    /// Any other source, some columns at a time.
    fn strided<T: Packable>(
        &self,
        from: &[T],
        columns: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<T>],
    ) {
        let column = |n: usize| {
            from[n * self.column_stride..]
                .iter()
                .step_by(self.rows.step)
        };
        let whole = columns.end - columns.len() % COLUMN_BLOCK;
        for n in (columns.start..whole).step_by(COLUMN_BLOCK) {
            let sources = column(n).zip(column(n + 1));
            let sources = sources.zip(column(n + 2)).zip(column(n + 3));
            for (row, (((a, b), c), d)) in to.chunks_exact_mut(width).zip(sources) {
                row[n..n + COLUMN_BLOCK].copy_from_slice(&self.read([*a, *b, *c, *d]));
            }
        }
        for n in whole..columns.end {
            for (row, x) in to.chunks_exact_mut(width).zip(column(n)) {
                row[n].write(x.read(self.reading));
            }
        }
    }
}
