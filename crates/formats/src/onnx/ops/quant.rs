//! Quantisation.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::narrow::{Narrowing, Overflow};
use kilim_core::ops::{
    Cast, ConvInteger, DequantizeLinear, DynamicQuantizeLinear, Gather, MatMul, MatMulInteger,
    QLinearConv, QLinearMatMul, QuantizeLinear,
};

use super::conv::attributes;
use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::tensor::dtype;

pub static OPERATORS: Family = OpTable(&[
    ("ConvInteger", |b| {
        let weights = b.input(1)?;
        let conv = attributes(b, weights)?;
        b.emit_same(ConvInteger {
            conv,
            requantize: None,
        })
    }),
    ("DequantizeLinear", dequantize),
    ("DynamicQuantizeLinear", |b| {
        let x = b.input(0)?;
        let parts = b.apply(DynamicQuantizeLinear, &[Some(x)], 3)?;
        (0..3).try_for_each(|i| b.bind(i, parts[i]))
    }),
    ("MatMulInteger", |b| b.emit_same(MatMulInteger::default())),
    ("QLinearConv", |b| {
        let weights = b.input(3)?;
        let conv = attributes(b, weights)?;
        b.emit_same(QLinearConv { conv })
    }),
    ("QLinearMatMul", qlinear_matmul),
    ("QuantizeLinear", quantize),
]);

pub fn quantize(b: &mut NodeBuilder) -> Result<()> {
    let output = match b.int_or("output_dtype", 0)? {
        0 => None,
        n => Some(dtype(n)?),
    };
    let op = QuantizeLinear {
        axis: b.int_or("axis", 1)?,
        block: b.count("block_size", Some(0))?,
        output,
    };
    let (mut x, mut scale, zero) = (b.input(0)?, real_scale(b, None)?, b.optional(2)?);
    match b.int_or("precision", 0)? {
        0 => {}
        n => [x, scale] = quotient_of(b, x, scale, &op, dtype(n)?)?,
    }
    if b.int_or("saturate", 1)? == 0 {
        let to = zero.and_then(|z| b.dtype(z)).or(output);
        if to.is_none_or(DType::is_narrow_float) {
            return unsaturated(b, x, scale, &op, to);
        }
    }
    b.emit(op, &[Some(x), Some(scale), zero])
}

/// The scale, input 1. Powers of two and integers become numbers of type `to`.
fn real_scale(b: &mut NodeBuilder, to: Option<DType>) -> Result<ValueId> {
    let scale = b.input(1)?;
    match b.dtype(scale) {
        Some(DType::F8E8M0 | DType::I32) => b.cast(scale, to.unwrap_or(DType::F32)),
        _ => Ok(scale),
    }
}

/// Data and scale whose quotient is computed with this precision. Half precision is divided and rounded
/// here, with a scale of one left, since kernels may compute it in single precision.
fn quotient_of(
    b: &mut NodeBuilder,
    x: ValueId,
    scale: ValueId,
    op: &QuantizeLinear,
    precision: DType,
) -> Result<[ValueId; 2]> {
    let (x, scale) = (b.cast(x, precision)?, b.cast(scale, precision)?);
    match precision {
        DType::F64 | DType::F32 => return Ok([x, scale]),
        DType::F16 | DType::BF16 => {}
        other => return Err(unsupported(format!("a division in {other}"))),
    }
    let (x, scale) = (b.cast(x, DType::F32)?, b.cast(scale, DType::F32)?);
    let each = broadcasting(b, x, scale, op)?;
    let quotient = b.div(x, each)?;
    let quotient = b.cast(quotient, precision)?;
    let quotient = b.cast(quotient, DType::F32)?;
    let (one, shape) = (b.number(1.0, scale)?, b.shape_of(scale)?);
    Ok([quotient, b.expand(one, shape)?])
}

/// Quantisation to float8 that gives infinities and NaN.
fn unsaturated(
    b: &mut NodeBuilder,
    x: ValueId,
    scale: ValueId,
    op: &QuantizeLinear,
    to: Option<DType>,
) -> Result<()> {
    let to = to.ok_or_else(|| unsupported("quantisation to a type known only at run time"))?;
    let scale = b.cast_like(scale, x)?;
    let scale = broadcasting(b, x, scale, op)?;
    let y = b.div(x, scale)?;
    let narrowing = Narrowing {
        overflow: Overflow::Special,
        ..Narrowing::default()
    };
    b.emit(Cast { to, narrowing }, &[Some(y)])
}

/// The scales of elements along an axis, or of blocks, in a shape that broadcasts to `x`.
fn broadcasting(
    b: &mut NodeBuilder,
    x: ValueId,
    scale: ValueId,
    op: &QuantizeLinear,
) -> Result<ValueId> {
    let one = b.shape(scale).is_some_and(|s| s.iter().all(|&n| n == 1));
    if one && op.block == 0 {
        return b.reshape(scale, &[]);
    }
    let axis = match b.axis_of(x, op.axis) {
        // Without such an axis there can be but one scale.
        Err(_) if op.block == 0 => return b.reshape(scale, &[]),
        axis => axis?,
    };
    if op.block == 0 {
        let mut shape = vec![1; b.rank(x)? - axis];
        shape[0] = -1;
        return b.reshape(scale, &shape);
    }
    let axis = axis as i64;
    let length = b.dim(x, axis)?;
    let places = b.iota(length)?;
    let block = b.number(op.block as f64, places)?;
    let blocks = b.div(places, block)?;
    b.op(Gather { axis }, &[scale, blocks])
}

/// Products of float8 are written out: they have no exact sums.
fn qlinear_matmul(b: &mut NodeBuilder) -> Result<()> {
    let [left, right, zero] = [b.input(0)?, b.input(3)?, b.input(7)?];
    let narrow = |b: &mut NodeBuilder, v| b.dtype(v).is_some_and(DType::is_narrow_float);
    if ![left, right, zero].iter().any(|&v| narrow(b, v)) {
        return b.emit_same(QLinearMatMul::default());
    }
    let mut factors = Vec::new();
    // Scales are those of the rows on the left, and of the columns on the right.
    for (first, axis) in [(0, -2), (3, -1)] {
        let (x, scale) = (b.input(first)?, b.input(first + 1)?);
        let scale = b.cast(scale, DType::F32)?;
        let op = DequantizeLinear { axis, block: 0 };
        let inputs = [Some(x), Some(scale), b.optional(first + 2)?];
        factors.push(b.apply(op, &inputs, 1)?[0]);
    }
    let product = b.op(MatMul::default(), &factors)?;
    let scale = b.input(6)?;
    let scale = b.cast(scale, DType::F32)?;
    let op = QuantizeLinear {
        axis: -2,
        block: 0,
        output: None,
    };
    b.emit(op, &[Some(product), Some(scale), Some(zero)])
}

pub fn dequantize(b: &mut NodeBuilder) -> Result<()> {
    let op = DequantizeLinear {
        axis: b.int_or("axis", 1)?,
        block: b.count("block_size", Some(0))?,
    };
    let output = match b.int_or("output_dtype", 0)? {
        0 => None,
        n => Some(dtype(n)?),
    };
    let scale = real_scale(b, output)?;
    let inputs = [b.optional(0)?, Some(scale), b.optional(2)?];
    let y = b.apply(op, &inputs, 1)?[0];
    let y = match output {
        None => y,
        Some(to) => b.cast(y, to)?,
    };
    b.bind(0, y)
}
