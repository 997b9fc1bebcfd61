//! Sums, extrema and their like over any axes. Floating-point sums are kept in `float64`, integer
//! ones wrap.

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Reduce, ReduceKind};
use kilim_core::{DType, Result};

use crate::common::rules::required;
use crate::common::{Class, Codec, Walk, Wide, contiguous_strides};
use crate::frame::{Build, Io, Kernel};

pub fn build(op: &Reduce, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let rank = x.shape.len();
    let axes = op.axes(rank, node)?;
    let strides = contiguous_strides(&x.shape);
    let walk = |reduced: bool| {
        let dims: Vec<usize> = (0..rank).filter(|d| axes.contains(d) == reduced).collect();
        let shape: Vec<usize> = dims.iter().map(|&d| x.shape[d]).collect();
        let strides: Vec<isize> = dims.iter().map(|&d| strides[d]).collect();
        (Walk::new(&shape, [&strides]), shape.iter().product())
    };
    let ((kept, outputs), (reduced, count)) = (walk(false), walk(true));
    let nest = Nest {
        kept,
        reduced,
        count,
        outputs,
    };
    let kind = op.kind;
    if x.dtype == DType::F32 && kind != ReduceKind::LogSumExp {
        return Ok(Box::new(F32 { kind, nest }));
    }
    let logarithmic = matches!(
        kind,
        ReduceKind::L2 | ReduceKind::LogSum | ReduceKind::LogSumExp | ReduceKind::Mean
    );
    Ok(match Class::of(x.dtype) {
        Class::F32 | Class::F64 => generic::<f64>(kind, nest, x.dtype),
        _ if logarithmic => generic::<f64>(kind, nest, x.dtype),
        Class::I64 => generic::<i64>(kind, nest, x.dtype),
        Class::U64 => generic::<u64>(kind, nest, x.dtype),
    })
}

/// What is reduced for each output, and from where.
struct Nest {
    kept: Walk<1>,
    reduced: Walk<1>,
    /// Elements behind each output.
    count: usize,
    outputs: usize,
}

impl Nest {
    /// True where neighbouring outputs come from neighbouring inputs.
    fn side_by_side(&self) -> bool {
        let (n, [step]) = self.kept.row();
        n > 1 && step == 1
    }
}

/// What `kind` makes of a finished accumulator.
fn finish(kind: ReduceKind, sum: f64, count: usize) -> f64 {
    match kind {
        ReduceKind::Mean => sum / count as f64,
        ReduceKind::L2 => sum.sqrt(),
        ReduceKind::LogSum => sum.ln(),
        _ => sum,
    }
}

/// What an accumulator starts with.
fn start(kind: ReduceKind) -> f64 {
    match kind {
        ReduceKind::Prod => 1.0,
        ReduceKind::Max => f64::NEG_INFINITY,
        ReduceKind::Min => f64::INFINITY,
        _ => 0.0,
    }
}

struct F32 {
    kind: ReduceKind,
    nest: Nest,
}

const LANES: usize = 8;

impl F32 {
    /// `step` takes in one element, `merge` unites two accumulators.
    fn fold(&self, io: &mut Io, step: impl Fn(f64, f32) -> f64, merge: impl Fn(f64, f64) -> f64) {
        let (kind, nest) = (self.kind, &self.nest);
        let x = io.input::<f32>(0);
        let y = io.output::<f32>(0);
        let first = start(kind);
        let (n, [stride]) = nest.kept.row();
        if nest.side_by_side() {
            let sums = io.scratch::<f64>(n);
            let mut rows = y.chunks_exact_mut(n);
            nest.kept.rows(|[base]| {
                sums.fill(first);
                nest.reduced.elements(|[r]| {
                    for (s, &v) in sums.iter_mut().zip(&x[(base + r) as usize..]) {
                        *s = step(*s, v);
                    }
                });
                let Some(row) = rows.next() else { return };
                for (y, &s) in row.iter_mut().zip(&*sums) {
                    *y = finish(kind, s, nest.count) as f32;
                }
            });
            return;
        }
        let (len, [along]) = nest.reduced.row();
        let mut y = y.iter_mut();
        nest.kept.rows(|[mut base]| {
            for _ in 0..n {
                let mut sum = first;
                nest.reduced.rows(|[r]| {
                    let at = (base + r) as usize;
                    if along == 1 {
                        let mut lanes = [first; LANES];
                        let (blocks, rest) = x[at..at + len].as_chunks::<LANES>();
                        for block in blocks {
                            for (lane, &v) in lanes.iter_mut().zip(block) {
                                *lane = step(*lane, v);
                            }
                        }
                        for &v in rest {
                            sum = step(sum, v);
                        }
                        sum = lanes.into_iter().fold(sum, &merge);
                    } else {
                        for i in 0..len {
                            sum = step(sum, x[at + i * along as usize]);
                        }
                    }
                });
                if let Some(y) = y.next() {
                    *y = finish(kind, sum, nest.count) as f32;
                }
                base += stride;
            }
        });
    }
}

impl Kernel for F32 {
    fn run(&self, io: &mut Io) -> Result<()> {
        let add = |a: f64, b: f64| a + b;
        let max = |a: f64, b: f64| if a > b || a.is_nan() { a } else { b };
        let min = |a: f64, b: f64| if a < b || a.is_nan() { a } else { b };
        match self.kind {
            ReduceKind::Max => self.fold(io, |a, x| max(a, x.into()), max),
            ReduceKind::Min => self.fold(io, |a, x| min(a, x.into()), min),
            ReduceKind::Prod => self.fold(io, |a, x| a * f64::from(x), |a, b| a * b),
            ReduceKind::L1 => self.fold(io, |a, x| a + f64::from(x.abs()), add),
            ReduceKind::L2 | ReduceKind::SumSquare => {
                self.fold(io, |a, x| a + f64::from(x) * f64::from(x), add);
            }
            _ => self.fold(io, |a, x| a + f64::from(x), add),
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        match self.nest.side_by_side() {
            true => self.nest.kept.row().0 * size_of::<f64>(),
            false => 0,
        }
    }
}

/// A type to accumulate in.
trait Fold: Wide {
    fn start(kind: ReduceKind, dtype: DType) -> Self;
    fn step(kind: ReduceKind, sum: Self, x: Self) -> Self;
    fn finish(kind: ReduceKind, sum: Self, count: usize) -> Self;
    /// `x` relative to the largest element, exponentiated.
    fn shifted_exp(self, largest: Self) -> Self;
    fn log_of_shifted(self, largest: Self) -> Self;
}

impl Fold for f64 {
    fn start(kind: ReduceKind, _: DType) -> f64 {
        start(kind)
    }

    fn step(kind: ReduceKind, sum: f64, x: f64) -> f64 {
        match kind {
            ReduceKind::Max if sum > x || sum.is_nan() => sum,
            ReduceKind::Min if sum < x || sum.is_nan() => sum,
            ReduceKind::Max | ReduceKind::Min => x,
            ReduceKind::Prod => sum * x,
            ReduceKind::L1 => sum + x.abs(),
            ReduceKind::L2 | ReduceKind::SumSquare => sum + x * x,
            _ => sum + x,
        }
    }

    fn finish(kind: ReduceKind, sum: f64, count: usize) -> f64 {
        finish(kind, sum, count)
    }

    fn shifted_exp(self, largest: f64) -> f64 {
        (self - largest).exp()
    }

    fn log_of_shifted(self, largest: f64) -> f64 {
        largest + self.ln()
    }
}

macro_rules! integer_fold {
    ($($t:ident),*) => { $(impl Fold for $t {
        fn start(kind: ReduceKind, dtype: DType) -> $t {
            let bits = 8 * dtype.size() as u32;
            let unsigned = !dtype.is_signed_integer();
            match kind {
                ReduceKind::Prod => 1,
                ReduceKind::Max if unsigned => 0,
                ReduceKind::Max => (-1i64 << (bits - 1)) as $t,
                ReduceKind::Min if dtype == DType::Bool => 1,
                ReduceKind::Min if unsigned => (u64::MAX >> (64 - bits)) as $t,
                ReduceKind::Min => (i64::MAX >> (64 - bits)) as $t,
                _ => 0,
            }
        }

        fn step(kind: ReduceKind, sum: $t, x: $t) -> $t {
            match kind {
                ReduceKind::Max => sum.max(x),
                ReduceKind::Min => sum.min(x),
                ReduceKind::Prod => sum.wrapping_mul(x),
                ReduceKind::L1 if x < <$t>::MIN.max(0) => sum.wrapping_sub(x),
                ReduceKind::SumSquare => sum.wrapping_add(x.wrapping_mul(x)),
                _ => sum.wrapping_add(x),
            }
        }

        fn finish(_: ReduceKind, sum: $t, _: usize) -> $t {
            sum
        }

        fn shifted_exp(self, _: $t) -> $t {
            self
        }

        fn log_of_shifted(self, _: $t) -> $t {
            self
        }
    })* };
}
integer_fold!(i64, u64);

fn generic<W: Fold>(kind: ReduceKind, nest: Nest, dtype: DType) -> Box<dyn Kernel> {
    Box::new(Generic::<W> {
        kind,
        nest,
        codec: W::codec(dtype),
        first: W::start(kind, dtype),
        lowest: W::start(ReduceKind::Max, dtype),
    })
}

struct Generic<W> {
    kind: ReduceKind,
    nest: Nest,
    codec: Codec<W>,
    first: W,
    lowest: W,
}

impl<W: Fold> Kernel for Generic<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (kind, codec) = (self.kind, &self.codec);
        let x = io.input_bytes(0);
        let y = io.output_bytes(0);
        let mut o = 0;
        self.nest.kept.elements(|[base]| {
            let result = if kind == ReduceKind::LogSumExp {
                let mut largest = self.lowest;
                self.nest.reduced.elements(|[r]| {
                    let v = codec.get(x, (base + r) as usize);
                    largest = W::step(ReduceKind::Max, largest, v);
                });
                let mut sum = W::zeroed();
                if largest > self.lowest {
                    self.nest.reduced.elements(|[r]| {
                        let v = codec.get(x, (base + r) as usize).shifted_exp(largest);
                        sum = W::step(ReduceKind::Sum, sum, v);
                    });
                    sum.log_of_shifted(largest)
                } else {
                    // Nothing but minus infinity, or NaN.
                    largest
                }
            } else {
                let mut sum = self.first;
                self.nest.reduced.elements(|[r]| {
                    sum = W::step(kind, sum, codec.get(x, (base + r) as usize));
                });
                W::finish(kind, sum, self.nest.count)
            };
            codec.set(y, o, result);
            o += 1;
        });
        debug_assert_eq!(o, self.nest.outputs);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{assert_close, noise, run_as, run_f32, tensor};

    const KINDS: [ReduceKind; 10] = [
        ReduceKind::Sum,
        ReduceKind::Mean,
        ReduceKind::Max,
        ReduceKind::Min,
        ReduceKind::Prod,
        ReduceKind::L1,
        ReduceKind::L2,
        ReduceKind::LogSum,
        ReduceKind::LogSumExp,
        ReduceKind::SumSquare,
    ];

    fn op(kind: ReduceKind) -> Reduce {
        Reduce {
            kind,
            keep_dims: false,
            noop_with_empty_axes: false,
        }
    }

    fn naive(kind: ReduceKind, v: &[f64]) -> f64 {
        let sum = |f: fn(f64) -> f64| v.iter().map(|&x| f(x)).sum::<f64>();
        match kind {
            ReduceKind::Sum => sum(|x| x),
            ReduceKind::Mean => sum(|x| x) / v.len() as f64,
            ReduceKind::Max => v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ReduceKind::Min => v.iter().copied().fold(f64::INFINITY, f64::min),
            ReduceKind::Prod => v.iter().product(),
            ReduceKind::L1 => sum(f64::abs),
            ReduceKind::L2 => sum(|x| x * x).sqrt(),
            ReduceKind::LogSum => sum(|x| x).ln(),
            ReduceKind::LogSumExp => sum(f64::exp).ln(),
            ReduceKind::SumSquare => sum(|x| x * x),
        }
    }

    #[test]
    fn every_kind_over_any_axes() {
        let shape = [3, 5, 2, 11];
        let x: Vec<f32> = noise(330, 5).iter().map(|v| 1.0 + 0.05 * v).collect();
        let strides = contiguous_strides(&shape);
        for axes in [&[3i64][..], &[0], &[1, 2], &[0, 2], &[1, 3], &[0, 1, 2, 3]] {
            let kept: Vec<usize> = (0..4).filter(|&d| !axes.contains(&(d as i64))).collect();
            let out: Vec<usize> = kept.iter().map(|&d| shape[d]).collect();
            let read: Vec<isize> = kept.iter().map(|&d| strides[d]).collect();
            let gone: Vec<usize> = axes.iter().map(|&d| shape[d as usize]).collect();
            let over: Vec<isize> = axes.iter().map(|&d| strides[d as usize]).collect();
            for kind in KINDS {
                let mut want = Vec::new();
                Walk::new(&out, [&read]).elements(|[base]| {
                    let mut line = Vec::new();
                    Walk::new(&gone, [&over])
                        .elements(|[r]| line.push(f64::from(x[(base + r) as usize])));
                    want.push(naive(kind, &line));
                });
                let y = run_f32(
                    &op(kind),
                    &[&tensor(&shape, &x), &tensor(&[axes.len()], axes)],
                    &out,
                );
                assert_close(&y, &want);
            }
        }
    }

    #[test]
    fn nothing_and_integers() {
        let none = tensor::<f32>(&[0, 2], &[]);
        let axis = tensor::<i64>(&[1], &[0]);
        let of = |kind| run_f32(&op(kind), &[&none, &axis], &[2]);
        assert_eq!(of(ReduceKind::Sum), [0.0; 2]);
        assert_eq!(of(ReduceKind::Prod), [1.0; 2]);
        assert_eq!(of(ReduceKind::Max), [f32::NEG_INFINITY; 2]);
        assert_eq!(of(ReduceKind::LogSumExp), [f32::NEG_INFINITY; 2]);
        let none = tensor::<i8>(&[0], &[]);
        assert_eq!(
            run_as::<i8>(&op(ReduceKind::Max), &[&none, &axis], &[]),
            [-128]
        );
        let x = tensor::<u8>(&[3], &[200, 100, 3]);
        assert_eq!(run_as::<u8>(&op(ReduceKind::Sum), &[&x, &axis], &[]), [47]);
        assert_eq!(
            run_as::<u8>(&op(ReduceKind::Mean), &[&x, &axis], &[]),
            [101]
        );
    }

    #[test]
    fn long_sums_stay_accurate() {
        let x = vec![0.1f32; 1_000_003];
        let axis = tensor::<i64>(&[1], &[0]);
        let y = run_f32(
            &op(ReduceKind::Mean),
            &[&tensor(&[x.len()], &x), &axis],
            &[],
        );
        assert_close(&y, &[f64::from(0.1f32)]);
    }
}
