//! Sums, extrema and their like over any axes. Floating-point sums are kept in `float64`, integer
//! ones wrap.

mod float;
#[cfg(test)]
mod tests;
mod wide;

use std::ops::Range;

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Reduce, ReduceKind};
use kilim_core::{DType, Result};
use kilim_host::elements::{Class, Walk, contiguous_strides};
use kilim_host::rules::required;
use kilim_host::{Build, Kernel};

pub fn build(op: &Reduce, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let rank = x.shape.len();
    let axes = op.axes(rank, node)?;
    let strides = contiguous_strides(&x.shape);
    let walk = |reduced: bool| {
        let dims: Vec<usize> = (0..rank).filter(|d| axes.contains(d) == reduced).collect();
        let shape: Vec<usize> = dims.iter().map(|&d| x.shape[d]).collect();
        let strides: Vec<isize> = dims.iter().map(|&d| strides[d]).collect();
        Walk::new(&shape, [&strides])
    };
    let (kept, reduced) = (walk(false), walk(true));
    let nest = Nest {
        count: reduced.len(),
        kept,
        reduced,
    };
    let kind = op.kind;
    if x.dtype == DType::F32 && kind != ReduceKind::LogSumExp {
        return Ok(Box::new(float::Fold { kind, nest }));
    }
    let logarithmic = matches!(
        kind,
        ReduceKind::L2 | ReduceKind::LogSum | ReduceKind::LogSumExp | ReduceKind::Mean
    );
    Ok(match Class::of(x.dtype) {
        Class::F32 | Class::F64 => wide::build::<f64>(kind, nest, x.dtype),
        _ if logarithmic => wide::build::<f64>(kind, nest, x.dtype),
        Class::I64 => wide::build::<i64>(kind, nest, x.dtype),
        Class::U64 => wide::build::<u64>(kind, nest, x.dtype),
    })
}

/// What is reduced for each output, and from where.
struct Nest {
    kept: Walk<1>,
    reduced: Walk<1>,
    /// Elements behind each output.
    count: usize,
}

impl Nest {
    /// True where neighbouring outputs come from neighbouring inputs.
    fn side_by_side(&self) -> bool {
        let (n, [step]) = self.kept.row();
        n > 1 && step == 1
    }

    /// Calls `work` with the number of each output of a range, counted from its beginning, and the offset of the first
    /// element that it is made of.
    fn outputs(
        &self,
        range: Range<usize>,
        mut work: impl FnMut(usize, isize) -> Result<()>,
    ) -> Result<()> {
        let (_, [step]) = self.kept.row();
        self.kept.spans(range, |span| {
            let mut base = span.at[0];
            for o in span.first..span.first + span.len {
                work(o, base)?;
                base += step;
            }
            Ok(())
        })
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
