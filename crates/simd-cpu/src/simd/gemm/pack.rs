//! Packing B in panels.

use crate::simd::isa::Isa;

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
    fn each(self) -> impl Iterator<Item = (usize, usize)> {
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

/// Writes a matrix in panels. Element (k, n) is `value` of `source[rows[k] + n * column_stride]`.
#[inline(always)]
pub(crate) fn pack(
    panels: Panels,
    source: &[f32],
    rows: impl Iterator<Item = usize> + Clone,
    column_stride: usize,
    value: impl Fn(f32) -> f32,
    packed: &mut [f32],
) {
    let mut out = packed.iter_mut();
    for (first, width) in panels.each() {
        let used = width.min(panels.n - first);
        for row in rows.clone() {
            let from = source[row + first * column_stride..]
                .iter()
                .step_by(column_stride);
            for (o, &x) in out.by_ref().take(used).zip(from) {
                *o = value(x);
            }
            for o in out.by_ref().take(width - used) {
                *o = 0.0;
            }
        }
    }
}
