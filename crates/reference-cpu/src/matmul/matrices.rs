//! MatMul, Gemm, Det.

use std::marker::PhantomData;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::shape_error;
use kilim_core::ops::{Activation, Det, Gemm, MatMul};
use kilim_core::{DType, Result};
use kilim_host::elements::{Codec, Walk, Wide, broadcast_strides};
use kilim_host::rules;
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

use super::product::{Batched, Strides, product};
use crate::by_real;
use crate::common::real::activate;
use crate::common::{Real, Ring};

pub fn accepts_matmul(op: &MatMul, node: &NodeSpec) -> Result<(), Refusal> {
    let whole = node.input(0).is_some_and(|s| s.dtype.is_integer())
        && node.input(1).is_some_and(|s| s.dtype.is_integer());
    if whole && node.input(2).is_none() && *op == plain(op) {
        return Ok(());
    }
    rules::reals(op, node)
}

/// The operator without scale and activation.
fn plain(op: &MatMul) -> MatMul {
    MatMul {
        transpose_b: op.transpose_b,
        ..MatMul::default()
    }
}

pub fn build_matmul(op: &MatMul, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (a, b) = (required(node, 0)?, required(node, 1)?);
    let shapes = Batched::new(&a.shape, &b.shape, op.transpose_b)?;
    if a.dtype.is_integer() {
        // Wrapping products have the same lower bits whether signed or not.
        let codec = |d| i64::codec(if d == DType::U64 { DType::I64 } else { d });
        return Ok(Box::new(Whole {
            shapes,
            elements: [a.elements(), b.elements(), node.outputs[0].elements()],
            codecs: [codec(a.dtype), codec(b.dtype), codec(node.outputs[0].dtype)],
        }));
    }
    let out = &node.outputs[0].shape;
    let bias = node
        .input(2)
        .map(|s| Walk::new(out, [&broadcast_strides(&s.shape, out)]));
    by_real!(a.dtype, T => Ok(Box::new(Floating::<T> {
        shapes,
        alpha: op.alpha.unwrap_or(1.0).into(),
        bias,
        activation: op.activation,
        element: PhantomData,
    })))
}

struct Floating<T> {
    shapes: Batched,
    alpha: f64,
    /// Over the elements of the bias.
    bias: Option<Walk<1>>,
    activation: Activation,
    element: PhantomData<T>,
}

impl<T: Real + Ring> Kernel for Floating<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, y) = (io.cpu(), io.output::<T>(0));
        self.shapes.run(cpu, io.input(0), io.input(1), y)?;
        scale(cpu, T::of(self.alpha), y)?;
        if let Some(walk) = &self.bias {
            add(cpu, walk, T::of(1.0), io.input(2), y)?;
        }
        activate(cpu, self.activation, y)
    }
}

fn scale<T: Real>(cpu: &CpuRun, factor: T, y: &mut [T]) -> Result<()> {
    if factor == T::of(1.0) {
        return Ok(());
    }
    cpu.rows(y.len(), by(y, 1), 1, |_, y, _| {
        y.iter_mut().for_each(|y| *y = *y * factor);
        Ok(())
    })
}

/// `y += factor * c`, with `c` broadcast.
fn add<T: Real>(cpu: &CpuRun, walk: &Walk<1>, factor: T, c: &[T], y: &mut [T]) -> Result<()> {
    let (_, [step]) = walk.row();
    cpu.rows(y.len(), by(y, 1), 1, |piece, y, _| {
        walk.spans(piece, |span| {
            let mut at = span.at[0];
            for y in &mut y[span.first..][..span.len] {
                *y += factor * c[at as usize];
                at += step;
            }
            Ok(())
        })
    })
}

/// Integers, in 64 bits.
struct Whole {
    shapes: Batched,
    elements: [usize; 3],
    codecs: [Codec<i64>; 3],
}

impl Whole {
    /// Elements of all tensors.
    fn room(&self) -> usize {
        self.elements
            .iter()
            .fold(0, |n, &more| n.saturating_add(more))
    }
}

impl Kernel for Whole {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, [na, nb, _]) = (io.cpu(), self.elements);
        let (a, rest) = io.scratch::<i64>(self.room()).split_at_mut(na);
        let (b, y) = rest.split_at_mut(nb);
        self.codecs[0].load_all(cpu, io.input_bytes(0), a)?;
        self.codecs[1].load_all(cpu, io.input_bytes(1), b)?;
        self.shapes.run(cpu, a, b, y)?;
        self.codecs[2].store_all(cpu, io.output_bytes(0), y)
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<i64>(self.room())
    }
}

pub fn accepts_gemm(op: &Gemm, node: &NodeSpec) -> Result<(), Refusal> {
    rules::reals(op, node)
}

pub fn build_gemm(op: &Gemm, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (a, b) = (required(node, 0)?, required(node, 1)?);
    let ([a0, a1], [b0, b1]) = (&a.shape[..], &b.shape[..]) else {
        return Err(shape_error("matrices are needed"));
    };
    let strides = |columns: usize, transposed| match transposed {
        true => Strides {
            row: 1,
            column: columns,
        },
        false => Strides {
            row: columns,
            column: 1,
        },
    };
    let (m, k) = if op.transpose_a {
        (*a1, *a0)
    } else {
        (*a0, *a1)
    };
    let (depth, n) = if op.transpose_b {
        (*b1, *b0)
    } else {
        (*b0, *b1)
    };
    if depth != k {
        return Err(shape_error("the matrices do not fit each other"));
    }
    let added = node
        .input(2)
        .map(|c| Walk::new(&[m, n], [&broadcast_strides(&c.shape, &[m, n])]));
    by_real!(a.dtype, T => Ok(Box::new(General::<T> {
        op: op.clone(),
        size: (m, k, n),
        a: strides(*a1, op.transpose_a),
        b: strides(*b1, op.transpose_b),
        added,
        element: PhantomData,
    })))
}

struct General<T> {
    op: Gemm,
    size: (usize, usize, usize),
    a: Strides,
    b: Strides,
    /// Over the elements of `c`.
    added: Option<Walk<1>>,
    element: PhantomData<T>,
}

impl<T: Real + Ring> Kernel for General<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, y) = (io.cpu(), io.output::<T>(0));
        let (a, b) = ((io.input(0), self.a), (io.input(1), self.b));
        product(cpu, self.size, a, b, y)?;
        let (alpha, beta) = (T::of(self.op.alpha.into()), T::of(self.op.beta.into()));
        scale(cpu, alpha, y)?;
        if let Some(walk) = &self.added {
            add(cpu, walk, beta, io.input(2), y)?;
        }
        activate(cpu, self.op.activation, y)
    }
}

pub fn build_det(_: &Det, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let [.., n, m] = x.shape[..] else {
        return Err(shape_error("a matrix is needed"));
    };
    if n != m {
        return Err(shape_error("the matrix is not square"));
    }
    Ok(Box::new(Determinant {
        n,
        codec: f64::codec(x.dtype),
    }))
}

struct Determinant {
    n: usize,
    codec: Codec<f64>,
}

impl Kernel for Determinant {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (n, size) = (self.n, self.n * self.n);
        let x = io.input_bytes(0);
        let count = io.output_len(0);
        let y = by(io.output_bytes(0), self.codec.size());
        let matrices = io.thread_scratch::<f64>(size);
        let cost = size.saturating_mul(n);
        io.cpu()
            .rows_with(count, y, matrices, cost, |piece, y, matrix, cpu| {
                for i in piece.clone() {
                    cpu.pieces(size, 1, |part| {
                        let to = &mut matrix[part.clone()];
                        self.codec.load(x, i * size + part.start, to);
                        Ok(())
                    })?;
                    let value = determinant(cpu, matrix, n)?;
                    self.codec.set(y, i - piece.start, value);
                }
                Ok(())
            })
    }

    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<f64>(self.n.saturating_mul(self.n))
    }
}

/// The determinant, by elimination with pivots; the matrix is used up.
fn determinant(cpu: &CpuRun, a: &mut [f64], n: usize) -> Result<f64> {
    let mut det = 1.0;
    for c in 0..n {
        cpu.spend(n)?;
        let mut pivot = c;
        for r in c + 1..n {
            if a[r * n + c].abs() > a[pivot * n + c].abs() {
                pivot = r;
            }
        }
        if a[pivot * n + c] == 0.0 {
            return Ok(0.0);
        }
        if pivot != c {
            for j in 0..n {
                a.swap(pivot * n + j, c * n + j);
            }
            det = -det;
        }
        det *= a[c * n + c];
        for r in c + 1..n {
            cpu.spend(n - c)?;
            let factor = a[r * n + c] / a[c * n + c];
            for j in c..n {
                a[r * n + j] -= factor * a[c * n + j];
            }
        }
    }
    Ok(det)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run_as, run_f32};
    use kilim_host::testing::{assert_close, noise, tensor};

    fn naive(a: &[f32], b: &[f32], (m, k, n): (usize, usize, usize)) -> Vec<f64> {
        (0..m * n)
            .map(|i| {
                (0..k)
                    .map(|p| f64::from(a[i / n * k + p]) * f64::from(b[p * n + i % n]))
                    .sum()
            })
            .collect()
    }

    fn transposed(x: &[f32], rows: usize, columns: usize) -> Vec<f32> {
        (0..x.len())
            .map(|i| x[i % rows * columns + i / rows])
            .collect()
    }

    #[test]
    fn gemm_in_every_order() {
        gemm_of_depth(7);
    }

    #[test]
    fn gemm_of_no_products_in_every_order() {
        gemm_of_depth(0);
    }

    fn gemm_of_depth(k: usize) {
        let (m, n) = (5, 3);
        let (a, b, c) = (noise(m * k, 1), noise(k * n, 2), noise(n, 3));
        let want: Vec<f64> = naive(&a, &b, (m, k, n))
            .iter()
            .enumerate()
            .map(|(i, v)| 0.5 * v + 2.0 * f64::from(c[i % n]))
            .collect();
        for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
            let a = match ta {
                true => tensor(&[k, m], &transposed(&a, m, k)),
                false => tensor(&[m, k], &a),
            };
            let b = match tb {
                true => tensor(&[n, k], &transposed(&b, k, n)),
                false => tensor(&[k, n], &b),
            };
            let op = Gemm {
                alpha: 0.5,
                beta: 2.0,
                transpose_a: ta,
                transpose_b: tb,
                activation: Activation::None,
            };
            assert_close(&run_f32(&op, &[&a, &b, &tensor(&[n], &c)], &[m, n]), &want);
        }
    }

    #[test]
    fn batches_broadcast() {
        let (m, k, n) = (2, 3, 4);
        let a = noise(2 * m * k, 1);
        let b = noise(3 * k * n, 2);
        let (ta, tb) = (tensor(&[2, 1, m, k], &a), tensor(&[3, k, n], &b));
        let y = run_f32(&MatMul::default(), &[&ta, &tb], &[2, 3, m, n]);
        let mut want = Vec::new();
        for i in 0..2 {
            for j in 0..3 {
                want.extend(naive(&a[i * m * k..], &b[j * k * n..], (m, k, n)));
            }
        }
        assert_close(&y, &want);
    }

    #[test]
    fn vectors_nothing_and_integers() {
        let v = tensor::<i32>(&[3], &[1, 2, 3]);
        let m = tensor::<i32>(&[2, 3], &[1, 0, -1, 2, 2, 2]);
        let op = MatMul::default();
        assert_eq!(run_as::<i32>(&op, &[&v, &v], &[]), [14]);
        assert_eq!(run_as::<i32>(&op, &[&m, &v], &[2]), [-2, 12]);
        let (a, b) = (tensor::<f32>(&[2, 0], &[]), tensor::<f32>(&[0, 2], &[]));
        assert_eq!(run_f32(&op, &[&a, &b], &[2, 2]), [0.0; 4]);
    }

    #[test]
    fn determinants() {
        let x = tensor::<f32>(&[2, 2, 2], &[0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 2.0, 4.0]);
        assert_close(&run_f32(&Det, &[&x], &[2]), &[-2.0, 0.0]);
    }
}
