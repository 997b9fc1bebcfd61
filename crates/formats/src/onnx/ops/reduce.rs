//! Reductions, running sums and softmax.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::ops::{
    ArgReduce, Cumulative, Flatten, Reduce, ReduceKind, Reshape, Softmax, SoftmaxKind,
};

use super::OpTable;
use super::movement::with_axes;
use crate::onnx::builder::NodeBuilder;

pub fn register(table: &mut OpTable) {
    table.add("ReduceSum", |b| reduce(b, ReduceKind::Sum, 13));
    table.add("ReduceMean", |b| reduce(b, ReduceKind::Mean, 18));
    table.add("ReduceMax", |b| reduce(b, ReduceKind::Max, 18));
    table.add("ReduceMin", |b| reduce(b, ReduceKind::Min, 18));
    table.add("ReduceProd", |b| reduce(b, ReduceKind::Prod, 18));
    table.add("ReduceL1", |b| reduce(b, ReduceKind::L1, 18));
    table.add("ReduceL2", |b| reduce(b, ReduceKind::L2, 18));
    table.add("ReduceLogSum", |b| reduce(b, ReduceKind::LogSum, 18));
    table.add("ReduceLogSumExp", |b| reduce(b, ReduceKind::LogSumExp, 18));
    table.add("ReduceSumSquare", |b| reduce(b, ReduceKind::SumSquare, 18));
    table.add("ArgMax", |b| arg_reduce(b, true));
    table.add("ArgMin", |b| arg_reduce(b, false));
    table.add("CumSum", |b| cumulative(b, false));
    table.add("CumProd", |b| cumulative(b, true));
    table.add("Softmax", |b| softmax(b, SoftmaxKind::Softmax));
    table.add("LogSoftmax", |b| softmax(b, SoftmaxKind::LogSoftmax));
    table.add("Hardmax", |b| softmax(b, SoftmaxKind::Hardmax));
}

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
