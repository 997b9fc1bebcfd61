//! Packing B in panels.

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
        k * self.width()
    }

    /// First column and columns with padding of each panel.
    pub(crate) fn each(self) -> impl Iterator<Item = (usize, usize)> {
        let (wide, width) = (self.vectors * self.lanes, self.width());
        (0..width)
            .step_by(wide)
            .map(move |first| (first, wide.min(width - first)))
    }
}

/// A constant weight as it is multiplied with. Subnormal numbers, which training leaves behind in
/// channels that it has given up, make products many times slower and add nothing to a sum.
#[inline(always)]
pub(crate) fn weight(x: f32) -> f32 {
    if x.is_subnormal() { 0.0 } else { x }
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

/// Rows that are read together: what a cache line of a column holds is used up before the next.
pub(crate) const ROW_BLOCK: usize = 16;
/// Columns that are read together: a few, as columns often lie a multiple of 4 KiB apart and then
/// share one set of the first-level cache.
const COLUMN_BLOCK: usize = 4;

/// Writes a matrix in panels. Row `outer * inner + i`, column n is `value` of
/// `source[starts[outer] + i * step + n * column_stride]`.
#[inline(always)]
pub(crate) fn pack(
    panels: Panels,
    source: &[f32],
    rows: RowStarts,
    column_stride: usize,
    value: impl Fn(f32) -> f32,
    packed: &mut [f32],
) {
    let k = rows.starts.len() * rows.inner;
    for (first, width) in panels.each() {
        let panel = &mut packed[first * k..][..width * k];
        let used = width.min(panels.n - first);
        for i in (0..rows.inner).step_by(ROW_BLOCK) {
            let count = ROW_BLOCK.min(rows.inner - i);
            for (outer, start) in rows.starts.iter().enumerate() {
                let to = &mut panel[(outer * rows.inner + i) * width..][..count * width];
                let from = &source[start + i * rows.step + first * column_stride..];
                if column_stride == 1 {
                    for (row, to) in to.chunks_exact_mut(width).enumerate() {
                        let from = &from[row * rows.step..][..used];
                        to.iter_mut().zip(from).for_each(|(o, &x)| *o = value(x));
                    }
                } else {
                    columns(
                        from,
                        rows.step,
                        column_stride,
                        &value,
                        width,
                        &mut to[..],
                        used,
                    );
                }
                for row in to.chunks_exact_mut(width) {
                    row[used..].fill(0.0);
                }
            }
        }
    }
}

/// Writes `used` columns of a block of rows, some columns at a time.
#[inline(always)]
fn columns(
    from: &[f32],
    step: usize,
    stride: usize,
    value: &impl Fn(f32) -> f32,
    width: usize,
    to: &mut [f32],
    used: usize,
) {
    let column = |n: usize| from[n * stride..].iter().step_by(step);
    let whole = used - used % COLUMN_BLOCK;
    for n in (0..whole).step_by(COLUMN_BLOCK) {
        let sources = column(n).zip(column(n + 1));
        let sources = sources.zip(column(n + 2)).zip(column(n + 3));
        for (row, (((&a, &b), &c), &d)) in to.chunks_exact_mut(width).zip(sources) {
            let values = [value(a), value(b), value(c), value(d)];
            row[n..n + COLUMN_BLOCK].copy_from_slice(&values);
        }
    }
    for n in whole..used {
        for (row, &x) in to.chunks_exact_mut(width).zip(column(n)) {
            row[n] = value(x);
        }
    }
}
