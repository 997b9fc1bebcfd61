//! Reductions, arg reductions, softmax and running sums.

use kilim_core::DType;
use kilim_core::ops::*;

use super::Kernels;
use super::index::index_type;
use super::movement::{around, ok};
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage::{Scalar, scalar};
use crate::walk::{collapse, strides};

pub(crate) const FLOAT_OPS: &[&str] = &[
    "Sum",
    "Mean",
    "Max",
    "Min",
    "Prod",
    "L1",
    "L2",
    "LogSum",
    "LogSumExp",
    "SumSquare",
];
pub(crate) const INT_OPS: &[&str] = &["Sum", "Max", "Min", "Prod", "L1", "SumSquare"];
const TRUTH_OPS: &[&str] = &["Max", "Min"];

/// From this length on a workgroup works on one row.
const LONG: usize = 32;
/// From this many rows on there are enough threads with one for each.
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

fn launch(
    l: &mut Lowering,
    shader: &'static str,
    defines: &[(&'static str, &'static str)],
    params: Params,
    rows: usize,
    group: bool,
) {
    let mut defines = defines.to_vec();
    defines.push(("GROUP", if group { "1" } else { "0" }));
    let operands = [Operand::Input(0), Operand::Output(0)];
    if group {
        l.grouped(shader, &defines, &operands, params, rows);
    } else {
        l.linear(shader, &defines, &operands, params, rows);
    }
}

fn reduce(op: &Reduce, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let axes = ok(op.axes(x.shape.len(), l.node))?;
    let name = match op.kind {
        ReduceKind::Sum => "Sum",
        ReduceKind::Mean => "Mean",
        ReduceKind::Max => "Max",
        ReduceKind::Min => "Min",
        ReduceKind::Prod => "Prod",
        ReduceKind::L1 => "L1",
        ReduceKind::L2 => "L2",
        ReduceKind::LogSum => "LogSum",
        ReduceKind::LogSumExp => "LogSumExp",
        ReduceKind::SumSquare => "SumSquare",
    };
    let Some(Scalar { name: t, spare }) = scalar(x.dtype) else {
        return refuse(format!("reductions of {} are not on the GPU", x.dtype));
    };
    let known = match (t, x.dtype) {
        ("f32", _) => FLOAT_OPS,
        (_, DType::Bool) => TRUTH_OPS,
        _ => INT_OPS,
    };
    if !known.contains(&name) {
        return refuse(format!("Reduce{name} of {} is not on the GPU", x.dtype));
    }
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
    let params = Params::new()
        .dims(&kept)
        .dims(&unsigned(&kept_walk[0]))
        .dims(&reduced)
        .dims(&unsigned(&walk[0]))
        .u(kept.len())
        .u(reduced.len())
        .u(outputs)
        .u(steps)
        .u(spare);
    let inner = walk[0].last().copied().unwrap_or(1);
    let group = grouped(outputs, steps, inner as usize);
    launch(
        l,
        "reduce",
        &[("T", t), ("OP", name)],
        params,
        outputs,
        group,
    );
    Ok(())
}

fn arg(op: &ArgReduce, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [_, size, inner] = around(&x.shape, axis);
    let Some(Scalar { name: t, .. }) = scalar(x.dtype) else {
        return refuse(format!("arg reductions of {} are not on the GPU", x.dtype));
    };
    let index = index_type(y.dtype)?;
    let outputs = y.elements();
    if size == 0 && outputs > 0 {
        return refuse("there is nothing to choose from");
    }
    let params = Params::new()
        .u(outputs)
        .u(size)
        .u(inner)
        .u(usize::from(op.select_last));
    let defines = [
        ("T", t),
        ("MAX", if op.max { "1" } else { "0" }),
        ("INDEX", index),
    ];
    let group = grouped(outputs, size, inner);
    launch(l, "arg", &defines, params, outputs, group);
    Ok(())
}

fn softmax(op: &Softmax, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let x = l.input(0)?;
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [outer, size, inner] = around(&x.shape, axis);
    let rows = if size == 0 { 0 } else { outer * inner };
    let (name, group) = match op.kind {
        SoftmaxKind::Softmax => ("Softmax", grouped(rows, size, inner)),
        SoftmaxKind::LogSoftmax => ("LogSoftmax", grouped(rows, size, inner)),
        SoftmaxKind::Hardmax => ("Hardmax", false),
    };
    let params = Params::new().u(rows).u(size).u(inner).f(op.beta);
    launch(l, "softmax", &[("OP", name)], params, rows, group);
    Ok(())
}

fn cumulative(op: &Cumulative, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axis = ok(op.axis(x.shape.len(), l.node))?;
    let [outer, size, inner] = around(&x.shape, axis);
    let Some(Scalar { name: t, spare }) = scalar(x.dtype) else {
        return refuse(format!("running sums of {} are not on the GPU", x.dtype));
    };
    let rows = outer * inner;
    l.linear(
        "cumulative",
        &[("T", t), ("PRODUCT", if op.product { "1" } else { "0" })],
        &[Operand::Input(0), Operand::Output(0)],
        Params::new()
            .u(rows)
            .u(size)
            .u(inner)
            .u(usize::from(op.exclusive))
            .u(usize::from(op.reverse))
            .u(spare),
        rows,
    );
    Ok(())
}
