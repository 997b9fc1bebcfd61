//! Reductions of any element type, one element after another.

use kilim_core::ops::ReduceKind;
use kilim_core::{DType, Result};
use kilim_host::elements::{Codec, Wide};
use kilim_host::{CpuRun, Io, Kernel, by};

use super::{Nest, finish, start};
use crate::common::is_nan;

/// A type to accumulate in.
pub(super) trait Accumulator: Wide {
    fn start(kind: ReduceKind, dtype: DType) -> Self;
    fn step(kind: ReduceKind, sum: Self, x: Self) -> Self;
    fn finish(kind: ReduceKind, sum: Self, count: usize) -> Self;
    /// `x` relative to the largest element, exponentiated.
    fn shifted_exp(self, largest: Self) -> Self;
    /// The logarithm of a sum of such, with `largest` as it was.
    fn log_of_shifted(self, largest: Self) -> Self;
}

impl Accumulator for f64 {
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

macro_rules! integers {
    ($($t:ident),*) => { $(impl Accumulator for $t {
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
integers!(i64, u64);

pub(super) fn build<W: Accumulator>(kind: ReduceKind, nest: Nest, dtype: DType) -> Box<dyn Kernel> {
    Box::new(Fold::<W> {
        kind,
        nest,
        codec: W::codec(dtype),
        first: W::start(kind, dtype),
        lowest: W::start(ReduceKind::Max, dtype),
    })
}

struct Fold<W> {
    kind: ReduceKind,
    nest: Nest,
    codec: Codec<W>,
    first: W,
    lowest: W,
}

/// Operations of an element: reading it and joining it, perhaps through an exponential.
const COST: usize = 8;

impl<W: Accumulator> Kernel for Fold<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input_bytes(0);
        let (n, size) = (io.output_len(0), self.codec.size());
        let cost = self.nest.count.saturating_mul(COST);
        let y = by(io.output_bytes(0), size);
        io.cpu().rows(n, y, cost, |piece, y, cpu| {
            self.nest.outputs(piece, |o, base| {
                let result = match self.kind {
                    ReduceKind::LogSumExp => self.log_sum_exp(cpu, x, base)?,
                    kind => {
                        let mut sum = self.first;
                        self.each(cpu, x, base, |v| sum = W::step(kind, sum, v))?;
                        W::finish(kind, sum, self.nest.count)
                    }
                };
                self.codec.set(y, o, result);
                Ok(())
            })
        })
    }
}

impl<W: Accumulator> Fold<W> {
    /// Shows `f` all elements that are joined with the one at `base`.
    fn each(&self, cpu: &CpuRun, x: &[u8], base: isize, mut f: impl FnMut(W)) -> Result<()> {
        let (_, [step]) = self.nest.reduced.row();
        cpu.pieces(self.nest.count, COST, |part| {
            self.nest.reduced.spans(part, |span| {
                let mut at = base + span.at[0];
                for _ in 0..span.len {
                    f(self.codec.get(x, at as usize));
                    at += step;
                }
                Ok(())
            })
        })
    }

    fn log_sum_exp(&self, cpu: &CpuRun, x: &[u8], base: isize) -> Result<W> {
        let (mut largest, mut sum) = (self.lowest, W::zeroed());
        self.each(cpu, x, base, |v| {
            largest = W::step(ReduceKind::Max, largest, v);
        })?;
        // Nothing can be subtracted from infinity.
        let finite = !is_nan(largest.shifted_exp(largest));
        if largest > self.lowest && finite {
            self.each(cpu, x, base, |v| {
                sum = W::step(ReduceKind::Sum, sum, v.shifted_exp(largest));
            })?;
            return Ok(sum.log_of_shifted(largest));
        }
        // Infinity, nothing but minus infinity, or NaN.
        Ok(largest)
    }
}
