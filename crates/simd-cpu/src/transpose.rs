//! Transposing matrices.

use kilim_core::Result;
use kilim_host::{CpuRun, by};

use super::isa::{Isa, Simd, Task};

/// Rows and columns that are transposed together, so that both sides stay in the cache.
const BLOCK: usize = 16;

/// Some columns of a matrix, which become rows.
struct Transpose<'a> {
    cpu: &'a CpuRun<'a>,
    from: &'a [f32],
    rows: usize,
    columns: usize,
    /// The first of the columns.
    first: usize,
    to: &'a mut [f32],
}

impl Task for Transpose<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Result<()> {
        for row in (0..self.rows).step_by(BLOCK) {
            let rows = BLOCK.min(self.rows - row);
            for to in self.to.chunks_mut(BLOCK * self.rows).enumerate() {
                let (block, to) = to;
                self.cpu.spend(rows * BLOCK)?;
                for (c, to) in to.chunks_exact_mut(self.rows).enumerate() {
                    let column = self.first + block * BLOCK + c;
                    let to = &mut to[row..row + rows];
                    let from = self.from[row * self.columns + column..]
                        .iter()
                        .step_by(self.columns);
                    for (to, from) in to.iter_mut().zip(from) {
                        *to = *from;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Writes the transpose of a matrix of `rows * columns` elements.
///
/// # Errors
/// `Aborted` where the run is to stop.
pub(crate) fn transpose(
    cpu: &CpuRun,
    isa: Isa,
    from: &[f32],
    rows: usize,
    columns: usize,
    to: &mut [f32],
) -> Result<()> {
    assert!(from.len() == rows * columns && to.len() == rows * columns);
    cpu.rows(columns, by(to, rows), rows, |piece, to, cpu| {
        isa.dispatch(Transpose {
            cpu,
            from,
            rows,
            columns,
            first: piece.start,
            to,
        })
    })
}
