//! The product of two matrices by their strides.

use kilim_core::Result;
use kilim_core::ops::MatMulGeometry;
use kilim_host::elements::{Walk, broadcast_strides};
use kilim_host::{CpuRun, by};

use crate::common::Ring;

/// A strided view of a matrix: the distances of rows and of columns.
#[derive(Clone, Copy, Debug)]
pub struct Strides {
    pub row: usize,
    pub column: usize,
}

/// `y = a * b`, `m` by `n`, rows of `y` in one piece.
///
/// # Errors
/// `Aborted` where the run is to stop.
pub fn product<T: Ring>(
    cpu: &CpuRun,
    (m, k, n): (usize, usize, usize),
    (a, a_at): (&[T], Strides),
    (b, b_at): (&[T], Strides),
    y: &mut [T],
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let cost = k.max(1).saturating_mul(n);
    cpu.rows(m, by(y, n), cost, |piece, y, cpu| {
        for (i, y) in piece.zip(y.chunks_exact_mut(n)) {
            // Without products `a` has no elements, whatever its rows are.
            let a = a.get(i * a_at.row..).unwrap_or_default();
            if b_at.column == 1 {
                cpu.fill(y, T::ZERO)?;
                for p in 0..k {
                    let v = a[p * a_at.column];
                    let b = &b[p * b_at.row..][..n];
                    cpu.pieces(n, 1, |piece| {
                        for (y, &b) in y[piece.clone()].iter_mut().zip(&b[piece]) {
                            *y = y.plus(v.times(b));
                        }
                        Ok(())
                    })?;
                }
                continue;
            }
            for (j, y) in y.iter_mut().enumerate() {
                let mut sum = T::ZERO;
                cpu.pieces(k, 1, |piece| {
                    for p in piece {
                        let b = b[p * b_at.row + j * b_at.column];
                        sum = sum.plus(a[p * a_at.column].times(b));
                    }
                    Ok(())
                })?;
                *y = sum;
            }
        }
        Ok(())
    })
}

/// numpy's `matmul` of two shapes: a product for every pair of matrices.
#[derive(Clone, Debug)]
pub struct Batched {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    a: Strides,
    b: Strides,
    /// Matrices of `a` and `b`, in elements.
    batch: Walk<2>,
}

impl Batched {
    /// # Errors
    /// `Shape` where the shapes do not fit each other.
    pub fn new(a: &[usize], b: &[usize], transpose_b: bool) -> Result<Batched> {
        let g = MatMulGeometry::new(a, b, transpose_b)?;
        let (m, k, n) = (g.m, g.k, g.n);
        let b_strides = match transpose_b && b.len() > 1 {
            true => Strides { row: 1, column: k },
            false => Strides { row: n, column: 1 },
        };
        let scaled = |lead: &[usize], matrix: usize| -> Vec<isize> {
            broadcast_strides(lead, &g.batch)
                .iter()
                .map(|s| s * matrix as isize)
                .collect()
        };
        Ok(Batched {
            m,
            k,
            n,
            a: Strides { row: k, column: 1 },
            b: b_strides,
            batch: Walk::new(
                &g.batch,
                [&scaled(&g.a_batch, m * k), &scaled(&g.b_batch, k * n)],
            ),
        })
    }

    /// All products, one after another.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn run<T: Ring>(&self, cpu: &CpuRun, a: &[T], b: &[T], y: &mut [T]) -> Result<()> {
        let size = self.m * self.n;
        if size == 0 {
            return Ok(());
        }
        let (_, [step_a, step_b]) = self.batch.row();
        let matrix = (self.m, self.k, self.n);
        let cost = size.saturating_mul(self.k);
        cpu.rows(self.batch.len(), by(y, size), cost, |piece, y, cpu| {
            let mut y = y.chunks_exact_mut(size);
            self.batch.spans(piece, |span| {
                let [mut at_a, mut at_b] = span.at;
                for y in y.by_ref().take(span.len) {
                    let (a, b) = (&a[at_a as usize..], &b[at_b as usize..]);
                    product(cpu, matrix, (a, self.a), (b, self.b), y)?;
                    at_a += step_a;
                    at_b += step_b;
                }
                Ok(())
            })
        })
    }
}
