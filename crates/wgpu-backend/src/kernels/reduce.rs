//! Reductions, arg reductions, softmax and running sums.

use kilim_core::DType;
use kilim_core::ops::{
    ArgReduce, Cumulative, Operator, Reduce, ReduceKind, Softmax, SoftmaxKind, normalize_axis,
};

use crate::device::storage::{Scalar, scalar};
use crate::kernels::Kernels;
use crate::lowering::elements::index_type;
use crate::lowering::walk::{around, collapse, strides};
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::reduce::fold::{Case, FloatOp, IntegerOp, IntegerT};
use crate::shaders::reduce::{
    arg as arg_shader, cumulative as cumulative_shader, fold, softmax as softmax_shader,
};
use crate::shaders::{Call, Operand, Target, Word};

/// The length of a row from which on a workgroup works on it.
const LONG: usize = 32;
/// The number of rows from which on there are enough threads with one for each.
const MANY: usize = 1 << 14;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Reduce>(reduce);
    kernels.add::<ArgReduce>(arg);
    kernels.add::<Softmax>(softmax);
    kernels.add::<Cumulative>(cumulative);
}

/// Whether a workgroup rather than a thread should do a row.
fn grouped(rows: usize, size: usize, inner: usize) -> bool {
    size >= LONG && (inner == 1 || rows < MANY / 16) && rows < (1 << 22)
}

/// Launches a shader that makes `rows` rows, a workgroup or a thread each.
fn launch(l: &mut Lowering, call: impl Into<Call>, rows: usize, group: bool) {
    match group {
        true => l.grouped(call, rows),
        false => l.linear(call, rows),
    }
}

fn float_op(kind: ReduceKind) -> FloatOp {
    match kind {
        ReduceKind::Sum => FloatOp::Sum,
        ReduceKind::Mean => FloatOp::Mean,
        ReduceKind::Max => FloatOp::Max,
        ReduceKind::Min => FloatOp::Min,
        ReduceKind::Prod => FloatOp::Prod,
        ReduceKind::L1 => FloatOp::L1,
        ReduceKind::L2 => FloatOp::L2,
        ReduceKind::LogSum => FloatOp::LogSum,
        ReduceKind::LogSumExp => FloatOp::LogSumExp,
        ReduceKind::SumSquare => FloatOp::SumSquare,
    }
}

/// The integer operation of a reduction; for truth values, the largest and the smallest only.
fn integer_op(kind: ReduceKind, truth: bool) -> Option<IntegerOp> {
    Some(match kind {
        ReduceKind::Max => IntegerOp::Max,
        ReduceKind::Min => IntegerOp::Min,
        _ if truth => return None,
        ReduceKind::Sum => IntegerOp::Sum,
        ReduceKind::Prod => IntegerOp::Prod,
        ReduceKind::L1 => IntegerOp::L1,
        ReduceKind::SumSquare => IntegerOp::SumSquare,
        ReduceKind::Mean | ReduceKind::L2 | ReduceKind::LogSum | ReduceKind::LogSumExp => {
            return None;
        }
    })
}

/// What reduces elements of a type, and the bits of a word above theirs.
fn fold_of(op: &Reduce, dtype: DType) -> Lowers<(Case, usize)> {
    if matches!(dtype, DType::I64 | DType::U64) && op.kind == ReduceKind::Sum {
        return Ok((Case::Wide, 0));
    }
    let Some(Scalar { word, spare }) = scalar(dtype) else {
        return refuse(format!("reductions of {dtype} are not on the GPU"));
    };
    let integer = |t| {
        let op = integer_op(op.kind, dtype == DType::Bool)?;
        Some(Case::Integer { t, op })
    };
    let case = match word {
        Word::F32 => Some(Case::Float {
            op: float_op(op.kind),
        }),
        Word::I32 => integer(IntegerT::I32),
        Word::U32 => integer(IntegerT::U32),
    };
    match case {
        Some(case) => Ok((case, spare)),
        None => refuse(format!("{} of {dtype} is not on the GPU", op.name())),
    }
}

fn reduce(op: &Reduce, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let axes = ok(op.axes(x.shape.len(), l.node))?;
    let (case, spare) = fold_of(op, x.dtype)?;
    let own = strides(&x.shape);
    let pick = |reduced: bool| {
        let picked = (0..x.shape.len()).filter(|d| axes.contains(d) == reduced);
        let (dims, walk): (Vec<usize>, Vec<i64>) =
            picked.map(|d| (x.shape[d], own[d] as i64)).unzip();
        collapse(&dims, &[walk])
    };
    let ((kept, kept_walk), (reduced, walk)) = (pick(false)?, pick(true)?);
    let unsigned = |w: &[i64]| w.iter().map(|&s| s as usize).collect::<Vec<_>>();
    let steps: usize = reduced.iter().product();
    let outputs = y.elements();
    let inner = walk[0].last().copied().unwrap_or(1);
    let group = grouped(outputs, steps, inner as usize);
    let call = fold::Launch {
        case,
        group,
        x: Operand::Input(0),
        y: Target::Output(0),
        params: fold::Params {
            kept: &kept,
            kept_walk: &unsigned(&kept_walk[0]),
            reduced: &reduced,
            reduced_walk: &unsigned(&walk[0]),
            kept_rank: kept.len(),
            reduced_rank: reduced.len(),
            outputs,
            steps,
            spare,
        },
    };
    launch(l, call, outputs, group);
    Ok(())
}

fn arg(op: &ArgReduce, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [_, size, inner] = around(&x.shape, axis);
    let Some(Scalar { word: t, .. }) = scalar(x.dtype) else {
        return refuse(format!("arg reductions of {} are not on the GPU", x.dtype));
    };
    let index = index_type(y.dtype)?;
    let outputs = y.elements();
    if size == 0 && outputs > 0 {
        return refuse("there is nothing to choose from");
    }
    let group = grouped(outputs, size, inner);
    let call = arg_shader::Launch {
        t,
        max: op.max,
        group,
        index,
        x: Operand::Input(0),
        y: Target::Output(0),
        params: arg_shader::Params {
            outputs,
            size,
            inner,
            last: op.select_last.into(),
        },
    };
    launch(l, call, outputs, group);
    Ok(())
}

fn softmax(op: &Softmax, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let x = l.input(0)?;
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [outer, size, inner] = around(&x.shape, axis);
    let rows = if size == 0 { 0 } else { outer * inner };
    let group = op.kind != SoftmaxKind::Hardmax && grouped(rows, size, inner);
    let soft = |op| softmax_shader::Case::Soft { op, group };
    let case = match op.kind {
        SoftmaxKind::Softmax => soft(softmax_shader::SoftOp::Softmax),
        SoftmaxKind::LogSoftmax => soft(softmax_shader::SoftOp::LogSoftmax),
        SoftmaxKind::Hardmax => softmax_shader::Case::Hard,
    };
    let call = softmax_shader::Launch {
        case,
        x: Operand::Input(0),
        y: Target::Output(0),
        params: softmax_shader::Params {
            rows,
            size,
            inner,
            beta: op.beta,
        },
    };
    launch(l, call, rows, group);
    Ok(())
}

fn cumulative(op: &Cumulative, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axis = ok(op.axis(x.shape.len(), l.node))?;
    let [outer, size, inner] = around(&x.shape, axis);
    let Some(Scalar { word: t, spare }) = scalar(x.dtype) else {
        return refuse(format!("running sums of {} are not on the GPU", x.dtype));
    };
    let rows = outer * inner;
    let call = cumulative_shader::Launch {
        t,
        product: op.product,
        x: Operand::Input(0),
        y: Target::Output(0),
        params: cumulative_shader::Params {
            rows,
            size,
            inner,
            exclusive: op.exclusive.into(),
            backward: op.reverse.into(),
            spare,
        },
    };
    l.linear(call, rows);
    Ok(())
}
