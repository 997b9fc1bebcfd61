//! The product of two matrices by their strides.

use kilim_core::Result;
use kilim_core::ops::MatMulGeometry;

use crate::common::{Ring, Walk, broadcast_strides};

/// A strided view of a matrix: the distances of rows and of columns.
#[derive(Clone, Copy, Debug)]
pub struct Strides {
    pub row: usize,
    pub column: usize,
}

/// `y = a * b`, `m` by `n`, rows of `y` in one piece.
pub fn product<T: Ring>(
    (m, k, n): (usize, usize, usize),
    (a, a_at): (&[T], Strides),
    (b, b_at): (&[T], Strides),
    y: &mut [T],
) {
    if n == 0 {
        return;
    }
    for (i, y) in y[..m * n].chunks_exact_mut(n).enumerate() {
        if b_at.column == 1 {
            y.fill(T::ZERO);
            for p in 0..k {
                let v = a[i * a_at.row + p * a_at.column];
                for (y, &b) in y.iter_mut().zip(&b[p * b_at.row..][..n]) {
                    *y = y.plus(v.times(b));
                }
            }
        } else {
            for (j, y) in y.iter_mut().enumerate() {
                let mut sum = T::ZERO;
                for p in 0..k {
                    let b = b[p * b_at.row + j * b_at.column];
                    sum = sum.plus(a[i * a_at.row + p * a_at.column].times(b));
                }
                *y = sum;
            }
        }
    }
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

    pub fn run<T: Ring>(&self, a: &[T], b: &[T], y: &mut [T]) {
        let size = self.m * self.n;
        if size == 0 {
            return;
        }
        let mut y = y.chunks_exact_mut(size);
        self.batch.elements(|[at_a, at_b]| {
            if let Some(y) = y.next() {
                product(
                    (self.m, self.k, self.n),
                    (&a[at_a as usize..], self.a),
                    (&b[at_b as usize..], self.b),
                    y,
                );
            }
        });
    }
}
