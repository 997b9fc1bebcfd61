//! Reductions, softmax and normalisations.

use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    ArgReduce, Cast, Cumulative, Fact, LpNorm, Lrn, Reduce, ReduceKind, Softmax, SoftmaxKind, TopK,
};

use super::super::import::{Import, Op};

fn axes(imp: &mut Import, op: &Op) -> Result<ValueId> {
    imp.as_vector(op, 1)
}

fn reduce(imp: &mut Import, op: &Op, kind: ReduceKind) -> Result<()> {
    let x = imp.input(op, 0)?;
    let axes = axes(imp, op)?;
    let reduce = Reduce {
        kind,
        keep_dims: op.flag(0)?,
        noop_with_empty_axes: true,
    };
    imp.emit(op, reduce, &[Some(x), Some(axes)])
}

pub fn mean(imp: &mut Import, op: &Op) -> Result<()> {
    reduce(imp, op, ReduceKind::Mean)
}

pub fn sum(imp: &mut Import, op: &Op) -> Result<()> {
    reduce(imp, op, ReduceKind::Sum)
}

pub fn product(imp: &mut Import, op: &Op) -> Result<()> {
    reduce(imp, op, ReduceKind::Prod)
}

pub fn max(imp: &mut Import, op: &Op) -> Result<()> {
    reduce(imp, op, ReduceKind::Max)
}

pub fn min(imp: &mut Import, op: &Op) -> Result<()> {
    reduce(imp, op, ReduceKind::Min)
}

/// Over `bool`, by way of `int32`.
fn logical(imp: &mut Import, op: &Op, kind: ReduceKind) -> Result<()> {
    let x = imp.input(op, 0)?;
    let axes = axes(imp, op)?;
    let numbers = imp.step(Cast::new(DType::I32), &[Some(x)])?;
    let reduce = Reduce {
        kind,
        keep_dims: op.flag(0)?,
        noop_with_empty_axes: true,
    };
    let reduced = imp.step(reduce, &[Some(numbers), Some(axes)])?;
    imp.emit(op, Cast::new(DType::Bool), &[Some(reduced)])
}

pub fn any(imp: &mut Import, op: &Op) -> Result<()> {
    logical(imp, op, ReduceKind::Max)
}

pub fn all(imp: &mut Import, op: &Op) -> Result<()> {
    logical(imp, op, ReduceKind::Min)
}

fn arg(imp: &mut Import, op: &Op, max: bool) -> Result<()> {
    let x = imp.input(op, 0)?;
    let axis = imp.constant_ints(op, 1)?;
    let axis = axis
        .first()
        .copied()
        .ok_or_else(|| Error::new(ErrorCode::InvalidModel, "the axis is empty"))?;
    let arg = ArgReduce {
        max,
        axis,
        keep_dims: false,
        select_last: false,
        output: imp.output_info(op, 0)?.dtype()?,
    };
    imp.emit(op, arg, &[Some(x)])
}

pub fn arg_max(imp: &mut Import, op: &Op) -> Result<()> {
    arg(imp, op, true)
}

pub fn arg_min(imp: &mut Import, op: &Op) -> Result<()> {
    arg(imp, op, false)
}

fn over_channels(imp: &mut Import, op: &Op, kind: SoftmaxKind, beta: f32) -> Result<()> {
    let x = imp.input(op, 0)?;
    let softmax = Softmax {
        kind,
        axis: -1,
        beta,
    };
    imp.emit(op, softmax, &[Some(x)])
}

pub fn softmax(imp: &mut Import, op: &Op) -> Result<()> {
    let beta = op.float(0)?;
    over_channels(imp, op, SoftmaxKind::Softmax, beta)
}

pub fn log_softmax(imp: &mut Import, op: &Op) -> Result<()> {
    over_channels(imp, op, SoftmaxKind::LogSoftmax, 1.0)
}

pub fn l2_normalization(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    imp.emit(op, LpNorm { axis: -1, p: 2 }, &[Some(x)])
}

/// TFLite sums over `2 * radius + 1` channels and multiplies by `alpha`; the operator divides
/// `alpha` by their number.
pub fn lrn(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let radius = op.int(0)?.clamp(0, i32::from(u16::MAX)) as usize;
    let size = 2 * radius + 1;
    let lrn = Lrn {
        size,
        bias: op.float(1)?,
        alpha: op.float(2)? * size as f32,
        beta: op.float(3)?,
        channels_last: true,
    };
    imp.emit(op, lrn, &[Some(x)])
}

/// Indices are `int32` in TFLite.
pub fn top_k(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let k = imp.as_vector(op, 1)?;
    let top = TopK {
        axis: -1,
        largest: true,
        sorted: true,
    };
    let wide = imp.add_value(&format!("{}/indices", op.node), Fact::default());
    let values = imp.output(op, 0)?;
    imp.push_into(Arc::new(top), &[Some(x), Some(k)], &[values, wide])?;
    let to = imp.output_info(op, 1)?.dtype()?;
    imp.emit_output(op, 1, Cast::new(to), &[Some(wide)])
}

pub fn cumsum(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    let cumulative = Cumulative {
        product: false,
        exclusive: op.flag(0)?,
        reverse: op.flag(1)?,
    };
    imp.emit(op, cumulative, &inputs)
}
