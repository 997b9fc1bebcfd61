//! Recurrent layers: the loop of the reference kernels, with products in vectors.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Gru, Lstm, Rnn};
use kilim_core::{DType, Result};
use kilim_host::registry::KernelRegistry;
use kilim_host::{CpuRun, by};
use kilim_reference_cpu::recurrent::{self, Cell};

use super::isa::{Isa, Simd, Task, read};
use super::rows::for_vectors;

/// Rows of a matrix that are multiplied at once.
const ROWS: usize = 4;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<Lstm>(accepts, |op, node, _| {
        recurrent::float_layer(Cell::from(op), &op.cell, node, add_product)
    });
    registry.add::<Gru>(accepts, |op, node, _| {
        recurrent::float_layer(Cell::from(op), &op.cell, node, add_product)
    });
    registry.add::<Rnn>(accepts, |op, node, _| {
        recurrent::float_layer(Cell::from(op), &op.cell, node, add_product)
    });
}

fn accepts<Op>(_: &Op, node: &NodeSpec) -> Result<(), Refusal> {
    match node.input(0) {
        Some(x) if x.dtype == DType::F32 => Ok(()),
        _ => Err(Refusal::new("the SIMD recurrent layers: not float32")),
    }
}

/// Adds the product of a matrix, whose rows are as long as `x`, with `x` to `y`.
fn add_product(cpu: &CpuRun, matrix: &[f32], x: &[f32], y: &mut [f32]) -> Result<()> {
    let n = x.len();
    if n == 0 {
        return Ok(());
    }
    let blocks = y.len().div_ceil(ROWS);
    let cost = n.saturating_mul(ROWS);
    cpu.rows(blocks, by(y, ROWS), cost, |piece, y, cpu| {
        let matrix = &matrix[piece.start * ROWS * n..];
        // A long row is cut.
        cpu.pieces(n, y.len(), |columns| {
            Isa::best().dispatch(Product {
                matrix: &matrix[columns.start..],
                stride: n,
                x: &x[columns],
                y: &mut *y,
            });
            Ok(())
        })
    })
}

/// Adds the product of some columns of a matrix with a part of a vector.
struct Product<'a> {
    matrix: &'a [f32],
    /// Elements from a row to the next.
    stride: usize,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Task for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (blocks, rest) = self.y.as_chunks_mut::<ROWS>();
        // The last row ends where the columns do.
        let whole = blocks.len() * ROWS * self.stride;
        let (matrix, last) = self.matrix.split_at(whole.min(self.matrix.len()));
        for (y, rows) in blocks.iter_mut().zip(matrix.chunks(ROWS * self.stride)) {
            add(s, rows, self.stride, self.x, y);
        }
        for (y, row) in rest.iter_mut().zip(last.chunks(self.stride)) {
            let terms = row.iter().zip(self.x);
            let terms = terms.map(|(&a, &b)| f64::from(a) * f64::from(b));
            *y = terms.fold(f64::from(*y), |sum, term| sum + term) as f32;
        }
    }
}

/// Adds to `y` the products of some rows, `stride` elements apart, with `x`.
#[inline(always)]
fn add<S: Simd>(s: S, rows: &[f32], stride: usize, x: &[f32], y: &mut [f32; ROWS]) {
    let n = x.len();
    assert!(rows.len() >= (ROWS - 1) * stride + n);
    let (rows, from) = (rows.as_ptr(), x.as_ptr());
    let mut sums = [s.splat(0.0); ROWS];
    // SAFETY: `for_vectors` stays inside of a row, and there are `ROWS` of them.
    unsafe {
        for_vectors!(s: S::LANES, n, |i, FULL, count| {
            let x = read::<S, FULL>(s, from.add(i), count);
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = s.fma(read::<S, FULL>(s, rows.add(r * stride + i), count), x, *sum);
            }
        });
    }
    for (y, sum) in y.iter_mut().zip(sums) {
        *y += s.sum(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize, seed: usize) -> Vec<f32> {
        let number = |i: usize| ((i * 37 + seed * 11) % 19) as f32 / 9.0 - 1.0;
        (0..n).map(number).collect()
    }

    #[test]
    fn products_on_every_instruction_set() {
        for (rows, n) in [(1, 1), (3, 5), (4, 16), (7, 33), (12, 47), (0, 3)] {
            let (matrix, x) = (noise(rows * n, 1), noise(n, 2));
            for isa in Isa::available() {
                let mut y = noise(rows, 3);
                let before = y.clone();
                isa.dispatch(Product {
                    matrix: &matrix,
                    stride: n,
                    x: &x,
                    y: &mut y,
                });
                for (r, &y) in y.iter().enumerate() {
                    let terms = (0..n).map(|i| f64::from(matrix[r * n + i]) * f64::from(x[i]));
                    let want = f64::from(before[r]) + terms.sum::<f64>();
                    assert!(
                        (f64::from(y) - want).abs() < 1e-5,
                        "{rows} x {n}: {y} {want}"
                    );
                }
            }
        }
    }
}
