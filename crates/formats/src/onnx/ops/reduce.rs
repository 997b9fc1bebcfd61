//! Reductions, running sums and softmax.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::ops::{
    ArgReduce, Cumulative, Flatten, Reduce, ReduceKind, Reshape, Softmax, SoftmaxKind,
};

use super::movement::with_axes;
use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;

pub static OPERATORS: Family = OpTable(&[
    ("ArgMax", |b| arg_reduce(b, true)),
    ("ArgMin", |b| arg_reduce(b, false)),
    ("CumProd", |b| cumulative(b, true)),
    ("CumSum", |b| cumulative(b, false)),
    ("Hardmax", |b| softmax(b, SoftmaxKind::Hardmax)),
    ("LogSoftmax", |b| softmax(b, SoftmaxKind::LogSoftmax)),
    ("ReduceL1", |b| reduce(b, ReduceKind::L1, 18)),
    ("ReduceL2", |b| reduce(b, ReduceKind::L2, 18)),
    ("ReduceLogSum", |b| reduce(b, ReduceKind::LogSum, 18)),
    ("ReduceLogSumExp", |b| reduce(b, ReduceKind::LogSumExp, 18)),
    ("ReduceMax", |b| reduce(b, ReduceKind::Max, 18)),
    ("ReduceMean", |b| reduce(b, ReduceKind::Mean, 18)),
    ("ReduceMin", |b| reduce(b, ReduceKind::Min, 18)),
    ("ReduceProd", |b| reduce(b, ReduceKind::Prod, 18)),
    ("ReduceSum", |b| reduce(b, ReduceKind::Sum, 13)),
    ("ReduceSumSquare", |b| reduce(b, ReduceKind::SumSquare, 18)),
    ("Softmax", |b| softmax(b, SoftmaxKind::Softmax)),
]);

/// Axes are an input from operator set `since` on.
fn reduce(b: &mut NodeBuilder, kind: ReduceKind, since: i64) -> Result<()> {
    let op = Reduce {
        kind,
        keep_dims: b.int_or("keepdims", 1)? != 0,
        noop_with_empty_axes: b.flag("noop_with_empty_axes")?,
    };
    let inputs = with_axes(b, since)?;
    b.emit(op, &inputs)
}

fn arg_reduce(b: &mut NodeBuilder, max: bool) -> Result<()> {
    let op = ArgReduce {
        max,
        axis: b.int_or("axis", 0)?,
        keep_dims: b.int_or("keepdims", 1)? != 0,
        select_last: b.flag("select_last_index")?,
        output: DType::I64,
    };
    b.emit_same(op)
}

fn cumulative(b: &mut NodeBuilder, product: bool) -> Result<()> {
    let op = Cumulative {
        product,
        exclusive: b.flag("exclusive")?,
        reverse: b.flag("reverse")?,
    };
    b.emit_same(op)
}

/// Before operator set 13 the dimensions from `axis` on count as one.
fn softmax(b: &mut NodeBuilder, kind: SoftmaxKind) -> Result<()> {
    let op = |axis| Softmax {
        kind,
        axis,
        beta: 1.0,
    };
    if b.version() >= 13 {
        let axis = b.int_or("axis", -1)?;
        return b.emit_same(op(axis));
    }
    let axis = b.int_or("axis", 1)?;
    let x = b.input(0)?;
    if let Some(shape) = b.fact(x).shape {
        let rank = shape.rank();
        let first = if axis < 0 { axis + rank as i64 } else { axis };
        let dims = usize::try_from(first).ok().and_then(|a| shape.0.get(a..));
        if let Some([_, rest @ ..]) = dims
            && rest.iter().all(|d| d.known() == Some(1))
        {
            return b.emit(op(first), &[Some(x)]);
        }
    }
    let shape = b.shape_of(x)?;
    let rows = b.op(Flatten { axis }, &[x])?;
    let rows = b.op(op(-1), &[rows])?;
    b.emit(Reshape { allow_zero: true }, &[Some(rows), Some(shape)])
}
