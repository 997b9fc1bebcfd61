//! Operators that onnxruntime had before the standard, and sums and products of integers.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Gather, GatherNd, MatMul, Pad, PadMode, Range, Reduce, ReduceKind, Trilu, UnaryKind, Unique,
};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::ops::resize;

pub static OPERATORS: Family = OpTable(&[
    ("CDist", distances),
    ("ComplexMul", |b| complex_product(b, false)),
    ("ComplexMulConj", |b| complex_product(b, true)),
    ("ExpandDims", |b| {
        let (x, axis) = (b.input(0)?, b.input(1)?);
        let known = b.constant(axis).map(|axis| axis.to_i64s()).transpose()?;
        match known.as_deref() {
            Some(&[axis]) => {
                let y = b.unsqueeze(x, &[axis])?;
                b.bind(0, y)
            }
            _ => Err(unsupported("an axis that is computed")),
        }
    }),
    ("GatherND", |b| b.emit_same(GatherNd { batch_dims: 0 })),
    ("GridSample", resize::grid_sample),
    ("MatMulInteger16", |b| {
        let sides = [b.input(0)?, b.input(1)?];
        let wide = wide(b, sides[0]);
        let [left, right] = sides.map(|x| b.cast(x, wide));
        let y = b.op(MatMul::default(), &[left?, right?])?;
        b.bind(0, y)
    }),
    ("MulInteger", |b| {
        let left = above_zero(b, 0)?;
        let right = above_zero(b, 2)?;
        let y = b.mul(left, right)?;
        b.bind(0, y)
    }),
    ("Pad", pad),
    ("Range", range),
    ("ReduceSumInteger", |b| {
        let x = b.input(0)?;
        let wide = wide(b, x);
        let x = b.cast(x, wide)?;
        let axes = b.ints("axes")?;
        let axes = axes.map(|axes| b.i64s(&axes)).transpose()?;
        let op = Reduce {
            kind: ReduceKind::Sum,
            keep_dims: b.int_or("keepdims", 1)? != 0,
            noop_with_empty_axes: false,
        };
        b.emit(op, &[Some(x), axes])
    }),
    ("TorchEmbedding", |b| {
        // What else it says is about gradients.
        let inputs = [Some(b.input(0)?), Some(b.input(1)?)];
        b.emit(Gather { axis: 0 }, &inputs)
    }),
    ("Trilu", |b| {
        let upper = b.int_or("upper", 1)? != 0;
        b.emit_same(Trilu { upper })
    }),
    ("UnfoldTensor", unfold),
    ("Unique", unique),
]);

/// The integer type of 32 bits that sums of `x` are computed in.
fn wide(b: &NodeBuilder, x: ValueId) -> DType {
    match b.dtype(x) {
        Some(DType::U8 | DType::U16 | DType::U32) => DType::U32,
        _ => DType::I32,
    }
}

/// Input `i` less its zero point, which is the next one, in `int32`.
fn above_zero(b: &mut NodeBuilder, i: usize) -> Result<ValueId> {
    let x = b.input(i)?;
    let x = b.cast(x, DType::I32)?;
    match b.optional(i + 1)? {
        Some(zero) => {
            let zero = b.cast(zero, DType::I32)?;
            b.sub(x, zero)
        }
        None => Ok(x),
    }
}

/// Inputs: `[m, k]` and `[n, k]`. The distances of their rows, `[m, n]`.
fn distances(b: &mut NodeBuilder) -> Result<()> {
    let root = match b.text_or("metric", "sqeuclidean")? {
        "euclidean" => true,
        "sqeuclidean" => false,
        other => return Err(unknown("metric", other)),
    };
    let (left, right) = (b.input(0)?, b.input(1)?);
    let (left, right) = (b.unsqueeze(left, &[1])?, b.unsqueeze(right, &[0])?);
    let between = b.sub(left, right)?;
    let squares = b.mul(between, between)?;
    let mut y = b.reduce(ReduceKind::Sum, squares, &[-1], false)?;
    if root {
        y = b.unary(UnaryKind::Sqrt, y)?;
    }
    b.bind(0, y)
}

/// Real and imaginary parts stand beside each other in the last dimension.
fn complex_product(b: &mut NodeBuilder, conjugate: bool) -> Result<()> {
    let (left, right) = (b.input(0)?, b.input(1)?);
    let ([a, i], [c, j]) = (b.halves(left, -1)?, b.halves(right, -1)?);
    let [ac, ij, aj, ic] = [(a, c), (i, j), (a, j), (i, c)].map(|(x, y)| b.mul(x, y));
    let (ac, ij, aj, ic) = (ac?, ij?, aj?, ic?);
    let parts = match conjugate {
        true => [b.add(ac, ij)?, b.sub(ic, aj)?],
        false => [b.sub(ac, ij)?, b.add(aj, ic)?],
    };
    let y = b.concat(&parts, -1)?;
    b.bind(0, y)
}

/// Inputs: data, pads `[2 * rank]` or `[1, 2 * rank]`, optional value of one element.
fn pad(b: &mut NodeBuilder) -> Result<()> {
    let mode = match b.text_or("mode", "constant")? {
        "constant" => PadMode::Constant,
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Edge,
        other => return Err(unknown("mode", other)),
    };
    let (data, pads) = (b.input(0)?, b.input(1)?);
    let pads = b.reshape(pads, &[-1])?;
    let value = match b.optional(2)? {
        Some(value) => Some(b.reshape(value, &[])?),
        None => None,
    };
    b.emit(Pad { mode }, &[Some(data), Some(pads), value])
}

/// Inputs: start, limit and optional step, each of one element.
fn range(b: &mut NodeBuilder) -> Result<()> {
    let start = b.input(0)?;
    let step = match b.optional(2)? {
        Some(step) => step,
        None => b.number(1.0, start)?,
    };
    let mut inputs = Vec::new();
    for x in [start, b.input(1)?, step] {
        inputs.push(Some(b.reshape(x, &[])?));
    }
    b.emit(Range, &inputs)
}

/// Runs of `size` elements along an axis, `step` apart; they are a dimension behind all others.
fn unfold(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let (dim, size, step) = (
        b.int_or("dim", -1)?,
        b.count("size", None)?,
        b.count("step", Some(1))?,
    );
    let axis = b.axis_of(x, dim)?;
    let length = b.fact(x).shape.and_then(|s| s.0[axis].known());
    let length = length.ok_or_else(|| unsupported("runs along a dimension of open size"))?;
    let last = length.checked_sub(size).filter(|_| step > 0);
    let last = last.ok_or_else(|| unsupported("runs longer than their dimension, or no step"))?;
    let starts = (0..=last).step_by(step);
    let places: Vec<i64> = starts.flat_map(|s| s..s + size).map(|i| i as i64).collect();
    let count = (last / step + 1) as i64;
    let places = b.i64s(&places)?;
    let places = b.reshape(places, &[count, size as i64])?;
    let runs = b.op(Gather { axis: axis as i64 }, &[x, places])?;
    let rank = b.rank(x)?;
    let mut perm: Vec<usize> = (0..=rank).filter(|&i| i != axis + 1).collect();
    perm.push(axis + 1);
    let y = b.transpose(runs, &perm)?;
    b.bind(0, y)
}

/// Outputs: what is different in the order in which it comes, the place of each element in that, how often each is there.
fn unique(b: &mut NodeBuilder) -> Result<()> {
    let op = Unique {
        axis: None,
        sorted: false,
    };
    let x = b.input(0)?;
    let y = b.apply(op, &[Some(x)], 4)?;
    b.bind(0, y[0])?;
    b.bind(1, y[2])?;
    b.bind(2, y[3])
}
