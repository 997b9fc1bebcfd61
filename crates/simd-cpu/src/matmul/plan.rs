//! What a MatMul or Gemm node asks for, as matrices.

use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::memory::{collect, vec_of};
use kilim_core::ops::{Activation, Gemm, MatMul};

use crate::gemm::{Matrix, Reading, RowStarts};

/// What is added to the product.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Addend {
    None,
    /// Input 2, an element for each column.
    Bias,
    /// An element for each column, known when the kernel is built.
    Known(Vec<f32>),
    /// Input 2, of the output's shape.
    Full,
}

/// A batch of products, sizes and places spelled out.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    /// The matrices of A and B that each matrix of C is the product of.
    pub pairs: Pairs,
    pub b_matrices: usize,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub scale: f32,
    pub addend: Addend,
    pub activation: Activation,
}

impl Plan {
    pub fn of_matmul(op: &MatMul, node: &NodeSpec) -> Option<Plan> {
        let (a, b) = (&node.input(0)?.shape, &node.input(1)?.shape);
        let (a_lead, m, k) = match a.split_last_chunk::<2>() {
            Some((lead, &[m, k])) => (lead, m, k),
            None => (&a[..0], 1, *a.first()?),
        };
        let (b_lead, rows, columns) = match b.split_last_chunk::<2>() {
            Some((lead, &[rows, columns])) => (lead, rows, columns),
            None if op.transpose_b => return None,
            None => (&b[..0], *b.first()?, 1),
        };
        let (b_k, n) = if op.transpose_b {
            (columns, rows)
        } else {
            (rows, columns)
        };
        let b_matrices: usize = b_lead.iter().product();
        let a_matrices: usize = a_lead.iter().product();
        let plan = Plan {
            m,
            k,
            n,
            pairs: Pairs::broadcast(a_lead, b_lead)?,
            b_matrices,
            transpose_a: false,
            transpose_b: op.transpose_b,
            scale: op.alpha.unwrap_or(1.0),
            addend: match node.input(2) {
                None => Addend::None,
                Some(bias) if bias.elements() == n => Addend::Bias,
                Some(_) => return None,
            },
            activation: op.activation,
        };
        if k != b_k {
            return None;
        }
        Some(if b_matrices == 1 {
            Plan {
                m: m * a_matrices,
                pairs: Pairs::default(),
                ..plan
            }
        } else {
            plan
        })
    }

    pub fn of_gemm(op: &Gemm, node: &NodeSpec) -> Option<Plan> {
        let (a, b) = (&node.input(0)?.shape, &node.input(1)?.shape);
        let (&[a0, a1], &[b0, b1]) = (a.as_slice(), b.as_slice()) else {
            return None;
        };
        let (m, k) = if op.transpose_a { (a1, a0) } else { (a0, a1) };
        let (b_k, n) = if op.transpose_b { (b1, b0) } else { (b0, b1) };
        (k == b_k).then_some(())?;
        Some(Plan {
            m,
            k,
            n,
            pairs: Pairs::default(),
            b_matrices: 1,
            transpose_a: op.transpose_a,
            transpose_b: op.transpose_b,
            scale: op.alpha,
            addend: match node.input(2) {
                None => Addend::None,
                Some(c) => gemm_addend(c, op.beta, m, n)?,
            },
            activation: op.activation,
        })
    }

    /// Steps through B, packed or not, from one matrix to the next.
    pub fn b_elements(&self) -> usize {
        self.k * self.n
    }

    /// One of the matrices B, its source given.
    pub fn b(&self, reading: Reading) -> Matrix<'static> {
        let (row, column_stride) = if self.transpose_b {
            (1, self.k)
        } else {
            (self.n, 1)
        };
        Matrix {
            rows: RowStarts::even(self.k, row),
            column_stride,
            reading: reading.times(self.scale),
        }
    }
}

pub(super) fn gemm_addend(c: &TensorSpec, beta: f32, m: usize, n: usize) -> Option<Addend> {
    if beta == 0.0 {
        return Some(Addend::None);
    }
    // A column of C does not fit a bias for each column of the output.
    let row = c.shape.last() == Some(&n) && c.elements() == n;
    if beta == 1.0 && row {
        return Some(Addend::Bias);
    }
    if beta == 1.0 && c.shape == [m, n] {
        return Some(Addend::Full);
    }
    let known = c.value.as_ref()?.as_slice::<f32>().ok()?;
    match known {
        [x] => Some(Addend::Known(vec_of(beta * x, n).ok()?)),
        xs if row => Some(Addend::Known(collect(xs.iter().map(|x| beta * x)).ok()?)),
        _ => None,
    }
}

/// The leading dimensions of A and B, broadcast. One pair by default.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs(Vec<Lead>);

#[derive(Clone, Copy, Debug)]
struct Lead {
    a: usize,
    b: usize,
}

impl Lead {
    fn count(self) -> usize {
        if self.a == 1 { self.b } else { self.a }
    }
}

impl Pairs {
    /// `None` where the dimensions do not fit.
    pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Pairs> {
        let rank = a.len().max(b.len());
        let dim = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
        let leads = (0..rank).map(|i| Lead {
            a: dim(a, i),
            b: dim(b, i),
        });
        let fit = |lead: &Lead| lead.a == lead.b || lead.a == 1 || lead.b == 1;
        leads
            .map(|lead| fit(&lead).then_some(lead))
            .collect::<Option<_>>()
            .map(Pairs)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|lead| lead.count()).product()
    }

    /// The indices of the matrices of A and B that matrix `i` of C is the product of.
    pub fn at(&self, mut i: usize) -> (usize, usize) {
        let (mut pair, mut strides) = ((0, 0), (1, 1));
        for &lead in self.0.iter().rev() {
            let j = i % lead.count();
            i /= lead.count();
            pair.0 += strides.0 * if lead.a == 1 { 0 } else { j };
            pair.1 += strides.1 * if lead.b == 1 { 0 } else { j };
            strides = (strides.0 * lead.a, strides.1 * lead.b);
        }
        pair
    }
}
