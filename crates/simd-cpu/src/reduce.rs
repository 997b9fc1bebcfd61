//! Sums and extrema of `float32` over neighbouring axes: the last ones, or ones in the middle.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Reduce, ReduceKind};
use kilim_core::{DType, Result};

use super::isa::{Isa, Simd, Task, read, write};
use kilim_host::registry::KernelRegistry;
use kilim_host::{Io, Kernel, by};

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<Reduce>(
        |op, node| match (node.input(0), Fold::of(op, node, Isa::best())) {
            (Some(x), Some(_)) if x.dtype == DType::F32 => Ok(()),
            _ => Err(Refusal::new(
                "the SIMD reductions: not float32, a rare function, or axes that lie apart",
            )),
        },
        |op, node, _| {
            let fold = Fold::of(op, node, Isa::best());
            Ok(Box::new(fold.ok_or_else(|| unsupported("this reduction"))?))
        },
    );
}

/// How elements are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Sum,
    Mean,
    Squares,
    Magnitudes,
    Max,
    Min,
}

/// Reduces the middle of `[outer, middle, inner]`.
#[derive(Debug)]
struct Fold {
    isa: Isa,
    kind: Kind,
    /// The square root is taken in the end.
    root: bool,
    outer: usize,
    middle: usize,
    inner: usize,
}

impl Fold {
    fn of(op: &Reduce, node: &NodeSpec, isa: Isa) -> Option<Fold> {
        let shape = &node.input(0)?.shape;
        let axes = op.axes(shape.len(), node).ok()?;
        let (kind, root) = match op.kind {
            ReduceKind::Sum => (Kind::Sum, false),
            ReduceKind::Mean => (Kind::Mean, false),
            ReduceKind::SumSquare => (Kind::Squares, false),
            ReduceKind::L2 => (Kind::Squares, true),
            ReduceKind::L1 => (Kind::Magnitudes, false),
            ReduceKind::Max => (Kind::Max, false),
            ReduceKind::Min => (Kind::Min, false),
            _ => return None,
        };
        let (first, last) = (*axes.first()?, *axes.last()?);
        // Axes of size one do not keep others apart.
        let apart = (first..last).any(|d| !axes.contains(&d) && shape[d] != 1);
        let sizes = |s: &[usize]| s.iter().product();
        let fold = Fold {
            isa,
            kind,
            root,
            outer: sizes(&shape[..first]),
            middle: sizes(&shape[first..=last]),
            inner: sizes(&shape[last + 1..]),
        };
        let size = fold.middle.checked_mul(fold.inner)?;
        (!apart && fold.outer > 0 && (1..=LARGEST).contains(&size)).then_some(fold)
    }
}

/// Elements that are joined to a result, or to neighbouring ones, without a look at what may stop the run.
const LARGEST: usize = 1 << 24;

impl Kernel for Fold {
    fn run(&self, io: &mut Io) -> Result<()> {
        let from: &[f32] = io.input(0);
        let (of, to) = (self.middle * self.inner, self.inner);
        let out = by(io.output(0), to);
        io.cpu().rows(self.outer, out, of, |rows, to, _| {
            self.isa.dispatch(Apply {
                fold: self,
                from: &from[rows.start * of..rows.end * of],
                to,
            });
            Ok(())
        })
    }
}

struct Apply<'a> {
    fold: &'a Fold,
    from: &'a [f32],
    to: &'a mut [f32],
}

impl Task for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Fold {
            kind,
            middle,
            inner,
            ..
        } = *self.fold;
        for (from, to) in self
            .from
            .chunks_exact(middle * inner)
            .zip(self.to.chunks_exact_mut(inner))
        {
            if inner == 1 {
                to[0] = line(s, kind, from);
            } else {
                columns(s, kind, from, to);
            }
            for x in to {
                if kind == Kind::Mean {
                    *x *= 1.0 / middle as f32;
                }
                if self.fold.root {
                    *x = x.sqrt();
                }
            }
        }
    }
}

fn start(kind: Kind) -> f32 {
    match kind {
        Kind::Max => f32::NEG_INFINITY,
        Kind::Min => f32::INFINITY,
        _ => 0.0,
    }
}

/// Joins a vector of elements to a vector of results. NaN stays.
#[inline(always)]
fn join<S: Simd>(s: S, kind: Kind, acc: S::V, x: S::V) -> S::V {
    match kind {
        Kind::Sum | Kind::Mean => s.add(acc, x),
        Kind::Squares => s.fma(x, x, acc),
        Kind::Magnitudes => s.add(acc, s.abs(x)),
        Kind::Max => s.select(s.is_nan(x), x, s.max(acc, x)),
        Kind::Min => s.select(s.is_nan(x), x, s.min(acc, x)),
    }
}

/// Joins two results.
fn join_results(kind: Kind, a: f32, b: f32) -> f32 {
    match kind {
        Kind::Max if b > a || b.is_nan() => b,
        Kind::Min if b < a || b.is_nan() => b,
        Kind::Max | Kind::Min => a,
        _ => a + b,
    }
}

/// Joins two vectors of results.
#[inline(always)]
fn merge<S: Simd>(s: S, kind: Kind, a: S::V, b: S::V) -> S::V {
    match kind {
        Kind::Max | Kind::Min => join(s, kind, a, b),
        _ => s.add(a, b),
    }
}

/// Steps after which a sum begins anew, so that rounding does not grow with its length.
const STRETCH: usize = 256;

/// Everything that lies in one piece, in four sums.
#[inline(always)]
fn line<S: Simd>(s: S, kind: Kind, x: &[f32]) -> f32 {
    let mut all = [s.splat(start(kind)); 4];
    let rest = x.chunks_exact(4 * S::LANES).remainder();
    for stretch in x[..x.len() - rest.len()].chunks(STRETCH * 4 * S::LANES) {
        let mut acc = [s.splat(start(kind)); 4];
        for block in stretch.chunks_exact(4 * S::LANES) {
            for (i, acc) in acc.iter_mut().enumerate() {
                // SAFETY: a block has four vectors.
                let v = unsafe { s.load(block.as_ptr().add(i * S::LANES)) };
                *acc = join(s, kind, *acc, v);
            }
        }
        for (all, acc) in all.iter_mut().zip(acc) {
            *all = merge(s, kind, *all, acc);
        }
    }
    let mut total = start(kind);
    for acc in all {
        let mut lanes = [0.0f32; 16];
        // SAFETY: no vector has more than 16 elements.
        unsafe { s.store(lanes.as_mut_ptr(), acc) };
        for &v in &lanes[..S::LANES] {
            total = join_results(kind, total, v);
        }
    }
    for &v in rest {
        let v = match kind {
            Kind::Squares => v * v,
            Kind::Magnitudes => v.abs(),
            _ => v,
        };
        total = join_results(kind, total, v);
    }
    total
}

/// Joins the rows of a matrix, for each column on its own.
#[inline(always)]
fn columns<S: Simd>(s: S, kind: Kind, from: &[f32], to: &mut [f32]) {
    let inner = to.len();
    let rows = from.len() / inner;
    let mut column = 0;
    while column < inner {
        // SAFETY: `vectors` are inside of each row and of the output.
        unsafe {
            let (from, to) = (from.as_ptr().add(column), to.as_mut_ptr().add(column));
            let left = inner - column;
            if left >= 4 * S::LANES {
                vectors::<S, 4, true>(s, kind, from, to, rows, inner, S::LANES);
                column += 4 * S::LANES;
            } else if left >= S::LANES {
                vectors::<S, 1, true>(s, kind, from, to, rows, inner, S::LANES);
                column += S::LANES;
            } else {
                vectors::<S, 1, false>(s, kind, from, to, rows, inner, left);
                column += left;
            }
        }
    }
}

/// # Safety
/// `N` vectors, whole ones if `FULL` and else of `count` elements, are at `to` and at each of
/// `rows` rows from `from` on, `stride` elements apart.
#[inline(always)]
unsafe fn vectors<S: Simd, const N: usize, const FULL: bool>(
    s: S,
    kind: Kind,
    from: *const f32,
    to: *mut f32,
    rows: usize,
    stride: usize,
    count: usize,
) {
    let mut all = [s.splat(start(kind)); N];
    for first in (0..rows).step_by(STRETCH) {
        let mut acc = [s.splat(start(kind)); N];
        for row in first..rows.min(first + STRETCH) {
            for (i, acc) in acc.iter_mut().enumerate() {
                // SAFETY: `N` vectors, the last of `count` elements unless `FULL`, are at each of `rows` rows.
                let v = unsafe { read::<S, FULL>(s, from.add(row * stride + i * S::LANES), count) };
                *acc = join(s, kind, *acc, v);
            }
        }
        for (all, acc) in all.iter_mut().zip(acc) {
            *all = merge(s, kind, *all, acc);
        }
    }
    for (i, acc) in all.into_iter().enumerate() {
        // SAFETY: `to` has room for `N` vectors, the last of `count` elements unless `FULL`.
        unsafe { write::<S, FULL>(s, to.add(i * S::LANES), acc, count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use crate::testing::{assert_within, run_kernel};
    use kilim_host::testing::{noise, tensor};

    const KINDS: [(Kind, bool); 7] = [
        (Kind::Sum, false),
        (Kind::Mean, false),
        (Kind::Squares, false),
        (Kind::Squares, true),
        (Kind::Magnitudes, false),
        (Kind::Max, false),
        (Kind::Min, false),
    ];

    fn reference(kind: Kind, root: bool, x: &[f64]) -> f64 {
        let n = x.len() as f64;
        let nan = x.iter().any(|v| v.is_nan());
        let y = match kind {
            Kind::Sum => x.iter().sum(),
            Kind::Mean => x.iter().sum::<f64>() / n,
            Kind::Squares => x.iter().map(|v| v * v).sum(),
            Kind::Magnitudes => x.iter().map(|v| v.abs()).sum(),
            _ if nan => f64::NAN,
            Kind::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Kind::Min => x.iter().copied().fold(f64::INFINITY, f64::min),
        };
        if root { y.sqrt() } else { y }
    }

    #[test]
    fn folds() {
        for (outer, middle, inner) in [
            (1, 1, 1),
            (3, 200, 1),
            (5, 7, 1),
            (2, 64, 1),
            (2, 49, 33),
            (1, 13, 4),
            (3, 6, 70),
            (2, 5, 3),
        ] {
            for nan in [false, true] {
                let mut data = noise(outer * middle * inner, 3);
                if nan {
                    let at = data.len() / 2;
                    data[at] = f32::NAN;
                }
                let x = tensor(&[outer, middle, inner], &data);
                for (kind, root) in KINDS {
                    let want: Vec<f64> = (0..outer * inner)
                        .map(|i| {
                            let at = |m| (i / inner * middle + m) * inner + i % inner;
                            let line: Vec<f64> = (0..middle).map(|m| data[at(m)].into()).collect();
                            reference(kind, root, &line)
                        })
                        .collect();
                    for isa in Isa::available() {
                        let op = Reduce {
                            kind: ReduceKind::Sum,
                            keep_dims: false,
                            noop_with_empty_axes: false,
                        };
                        let got = run_kernel(&op, &[Some(&x)], &[outer, inner], |_, _| {
                            Ok(Box::new(Fold {
                                isa,
                                kind,
                                root,
                                outer,
                                middle,
                                inner,
                            }))
                        });
                        let what = format!("{kind:?} {outer} {middle} {inner} {isa:?}");
                        assert_within(&got, &want, 1e-5, &what);
                    }
                }
            }
        }
    }
}
