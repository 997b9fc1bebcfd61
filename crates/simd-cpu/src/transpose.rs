//! Transposing matrices.

use super::isa::{Isa, Simd, Task};

/// Rows and columns that are transposed together, so that both sides stay in the cache.
const BLOCK: usize = 16;

struct Transpose<'a> {
    from: &'a [f32],
    rows: usize,
    columns: usize,
    to: &'a mut [f32],
}

impl Task for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for row in (0..self.rows).step_by(BLOCK) {
            let rows = BLOCK.min(self.rows - row);
            for column in (0..self.columns).step_by(BLOCK) {
                for c in column..(column + BLOCK).min(self.columns) {
                    let to = &mut self.to[c * self.rows + row..][..rows];
                    let from = self.from[row * self.columns + c..]
                        .iter()
                        .step_by(self.columns);
                    for (to, from) in to.iter_mut().zip(from) {
                        *to = *from;
                    }
                }
            }
        }
    }
}

/// Writes the transpose of a matrix of `rows * columns` elements.
pub(crate) fn transpose(isa: Isa, from: &[f32], rows: usize, columns: usize, to: &mut [f32]) {
    assert!(from.len() == rows * columns && to.len() == rows * columns);
    isa.dispatch(Transpose {
        from,
        rows,
        columns,
        to,
    });
}
