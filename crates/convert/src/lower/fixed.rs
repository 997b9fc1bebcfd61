//! Arithmetic of quantised numbers in integers (`kilim_core::fixed`), in `int64` operators: to the bit the same, but for the softmax, which
//! may differ by one step.

use kilim_core::error::{Result, unsupported};
use kilim_core::fixed::{Factor, divide_by_power, exp_of_negative};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    AffineQuantize, BinaryKind, Cast, Combination, ConvInteger, DequantizeLinear, Gather,
    MatMulInteger, MatMulIntegerToFloat, QLinearBinary, QuantizedBinary, QuantizedSoftmax,
    ReduceKind, Requantize, TableLookup, UnaryKind,
};
use kilim_core::{DType, Tensor};
use kilim_formats::build::{GraphBuilder, number};

use super::Lowered;
use super::pointwise::{clipped, whole};

/// Bits before the point of a scaled difference, and of a sum of exponentials (TFLite's `reference/softmax.h`).
const DIFFERENCE_BITS: u32 = 5;
const SUM_BITS: u32 = 12;

pub fn requantize(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<Requantize>() else {
        return Ok(None);
    };
    let x = node.input(0)?;
    Ok(Some(vec![finished(b, op, x, 0)?]))
}

/// A sum as a quantised type. Of several factors each is for a channel, with `inner` dimensions behind the channels.
fn finished(b: &mut GraphBuilder, op: &Requantize, x: ValueId, inner: usize) -> Result<ValueId> {
    let x = b.cast(x, DType::I64)?;
    let y = rescaled(b, x, &op.factors, inner)?;
    let zero = b.i64(op.zero_point.into())?;
    let y = b.add(y, zero)?;
    let [low, high] = op.range;
    let y = clamped(b, y, low.into(), high.into())?;
    b.cast(y, op.output)
}

/// An `int64` tensor between two numbers.
fn clamped(b: &mut GraphBuilder, x: ValueId, low: i64, high: i64) -> Result<ValueId> {
    let (low, high) = (b.i64(low)?, b.i64(high)?);
    let x = b.binary(BinaryKind::Max, x, low)?;
    b.binary(BinaryKind::Min, x, high)
}

/// `Factor::apply` of an `int64` tensor of 32-bit numbers.
fn rescaled(b: &mut GraphBuilder, x: ValueId, factors: &[Factor], inner: usize) -> Result<ValueId> {
    let mut shape = vec![1; inner + 1];
    shape[0] = factors.len();
    let shape = if factors.len() == 1 {
        &[][..]
    } else {
        &shape[..]
    };
    let mut list = |each: &dyn Fn(&Factor) -> i64| {
        let numbers: Vec<i64> = factors.iter().map(each).collect();
        match numbers.iter().all(|&n| n == 1) {
            true => Ok(None),
            false => whole(b, shape, &numbers).map(Some),
        }
    };
    let left = list(&|f| 1 << f.shift.clamp(0, 31))?;
    let multiplier = list(&|f| f.multiplier.into())?;
    let right = list(&|f| 1 << (-f.shift).clamp(0, 31))?;
    let mut x = x;
    for factor in [left, multiplier].into_iter().flatten() {
        x = b.mul(x, factor)?;
    }
    // To the nearest, ties up.
    let (half, steps) = (b.i64(1 << 30)?, b.i64(1 << 31)?);
    x = b.add(x, half)?;
    let x = floored(b, x, steps)?;
    match right {
        Some(right) => rounded_away(b, x, right),
        None => Ok(x),
    }
}

/// `floor(x / by)` for positive `by`: integer division of ONNX cuts off towards zero.
fn floored(b: &mut GraphBuilder, x: ValueId, by: ValueId) -> Result<ValueId> {
    let rest = b.binary(BinaryKind::Mod, x, by)?;
    let multiple = b.sub(x, rest)?;
    b.div(multiple, by)
}

/// `x / by` to the nearest, ties away from zero, where `by` are powers of two.
fn rounded_away(b: &mut GraphBuilder, x: ValueId, by: ValueId) -> Result<ValueId> {
    let rest = b.binary(BinaryKind::Mod, x, by)?;
    let multiple = b.sub(x, rest)?;
    let quotient = b.div(multiple, by)?;
    let (zero, one, two) = (b.i64(0)?, b.i64(1)?, b.i64(2)?);
    let most = b.sub(by, one)?;
    let half = b.div(most, two)?;
    let below = b.binary(BinaryKind::Less, x, zero)?;
    let below = b.cast(below, DType::I64)?;
    let threshold = b.add(half, below)?;
    let up = b.binary(BinaryKind::Greater, rest, threshold)?;
    let up = b.cast(up, DType::I64)?;
    b.add(quotient, up)
}

pub fn binary(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<QuantizedBinary>() else {
        return Ok(None);
    };
    let mut operands = Vec::with_capacity(2);
    for (i, zero) in op.zero_points.into_iter().enumerate() {
        let x = b.cast(node.input(i)?, DType::I64)?;
        let zero = b.i64(zero.into())?;
        operands.push(b.sub(x, zero)?);
    }
    let scaled = |b: &mut GraphBuilder, shift: u32, factors: [Factor; 2]| -> Result<Vec<ValueId>> {
        let steps = b.i64(1 << shift.min(31))?;
        let both = operands.iter().zip(factors).map(|(&x, factor)| {
            let x = b.mul(x, steps)?;
            rescaled(b, x, &[factor], 0)
        });
        both.collect()
    };
    let combined = match op.combination {
        Combination::Sum {
            left_shift,
            factors,
        } => {
            let both = scaled(b, left_shift, factors)?;
            b.add(both[0], both[1])?
        }
        Combination::Difference {
            left_shift,
            factors,
        } => {
            let both = scaled(b, left_shift, factors)?;
            b.sub(both[0], both[1])?
        }
        Combination::Product => b.mul(operands[0], operands[1])?,
    };
    Ok(Some(vec![finished(b, &op.result, combined, 0)?]))
}

/// A sum of products of integers, with its bias and what it becomes.
pub fn matmul_integer(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<MatMulInteger>() else {
        return Ok(None);
    };
    if op.requantize.is_none() && node.optional(4).is_none() {
        return Ok(None);
    }
    let inputs = &node.inputs[..node.inputs.len().min(4)];
    let mut y = b.step(MatMulInteger::default(), inputs)?;
    if let Some(bias) = node.optional(4) {
        y = b.add(y, bias)?;
    }
    if let Some(requantize) = &op.requantize {
        y = finished(b, requantize, y, 0)?;
    }
    Ok(Some(vec![y]))
}

/// A product of integers, each of its operations in `float32` a node.
pub fn matmul_integer_to_float(
    b: &mut GraphBuilder,
    node: &Lowered,
) -> Result<Option<Vec<ValueId>>> {
    if !node.op.is::<MatMulIntegerToFloat>() {
        return Ok(None);
    }
    let factors = [node.input(0)?, node.input(1)?].map(Some);
    let zeros = [node.optional(4), node.optional(5)];
    let sums = b.step(MatMulInteger::default(), &[factors, zeros].concat())?;
    let sums = b.cast(sums, DType::F32)?;
    let scale = b.mul(node.input(2)?, node.input(3)?)?;
    let mut y = b.mul(sums, scale)?;
    if let Some(bias) = node.optional(6) {
        y = b.add(y, bias)?;
    }
    Ok(Some(vec![y]))
}

/// A convolution of integers on data with its channels first, with its bias and what it becomes.
pub fn conv_integer(
    b: &mut GraphBuilder,
    node: &Lowered,
    op: ConvInteger,
) -> Result<Option<Vec<ValueId>>> {
    let inner = op.conv.strides.len();
    let inputs = &node.inputs[..node.inputs.len().min(4)];
    let sums = ConvInteger {
        conv: op.conv,
        requantize: None,
    };
    let mut y = b.step(sums, inputs)?;
    if let Some(bias) = node.optional(4) {
        let axes: Vec<i64> = (1..=inner as i64).collect();
        let bias = b.unsqueeze(bias, &axes)?;
        y = b.add(y, bias)?;
    }
    if let Some(requantize) = &op.requantize {
        y = finished(b, requantize, y, inner)?;
    }
    Ok(Some(vec![y]))
}

/// Ties are rounded away from zero, where QuantizeLinear takes them to even.
pub fn affine_quantize(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<AffineQuantize>() else {
        return Ok(None);
    };
    let x = node.input(0)?;
    let scale = b.number(op.scale.into(), x)?;
    let quotient = b.div(x, scale)?;
    let rounded = rounded_half_away(b, quotient)?;
    let [low, high] = bounds(op.output)?;
    // Far from all numbers of the type, so that the sum below is exact.
    let far = f64::from(1 << 20);
    let rounded = clipped(b, rounded, -far, far)?;
    let zero = b.number(op.zero_point.into(), rounded)?;
    let moved = b.add(rounded, zero)?;
    let y = clipped(b, moved, low, high)?;
    Ok(Some(vec![b.cast(y, op.output)?]))
}

/// Real numbers rounded to the nearest, ties away from zero.
pub fn rounded_half_away(b: &mut GraphBuilder, x: ValueId) -> Result<ValueId> {
    let size = b.unary(UnaryKind::Abs, x)?;
    // Halves are exact here; adding one to a number just below could round up.
    let cut = b.unary(UnaryKind::Floor, size)?;
    let rest = b.sub(size, cut)?;
    let half = b.number(0.5, rest)?;
    let up = b.binary(BinaryKind::GreaterOrEqual, rest, half)?;
    let up = b.cast(up, DType::F32)?;
    let size = b.add(cut, up)?;
    let sign = b.unary(UnaryKind::Sign, x)?;
    b.mul(size, sign)
}

fn bounds(dtype: DType) -> Result<[f64; 2]> {
    Ok(match dtype {
        DType::I8 => [-128.0, 127.0],
        DType::U8 => [0.0, 255.0],
        DType::I16 => [-32768.0, 32767.0],
        other => return Err(unsupported(format!("quantised numbers of {other}"))),
    })
}

/// The byte of each number is a place in the table.
pub fn table_lookup(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    if !node.op.is::<TableLookup>() {
        return Ok(None);
    }
    let (x, table) = (node.input(0)?, node.input(1)?);
    let signed = b.dtype(x) == Some(DType::I8);
    let mut place = b.cast(x, DType::I32)?;
    if signed {
        let bytes = b.number(256.0, place)?;
        place = b.binary(BinaryKind::Mod, place, bytes)?;
    }
    Ok(Some(vec![b.op(Gather { axis: 0 }, &[table, place])?]))
}

/// Exponentials come from the tables of the integer arithmetic; their quotient is computed in `float64`.
pub fn softmax(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<QuantizedSoftmax>() else {
        return Ok(None);
    };
    let x = node.input(0)?;
    let output = b.dtype(x);
    let lowest = match output {
        Some(DType::I8) => -128.0,
        Some(DType::U8) => 0.0,
        _ => return Err(unsupported("a softmax of other than 8-bit numbers")),
    };
    let exponentials: Vec<i32> = (0..256)
        .map(|d: i32| match -d >= op.smallest {
            true => exp_of_negative::<32>(op.factor.apply(-d), DIFFERENCE_BITS),
            false => 0,
        })
        .collect();
    let shares = exponentials
        .iter()
        .map(|&e| f64::from(divide_by_power(e, SUM_BITS)));
    let shares: Vec<f64> = shares.collect();
    let exponentials: Vec<f64> = exponentials.into_iter().map(f64::from).collect();
    let exponentials = b.tensor_value(Tensor::from_slice(&[256], &exponentials)?);
    let shares = b.tensor_value(Tensor::from_slice(&[256], &shares)?);
    let x = b.cast(x, DType::I32)?;
    let largest = b.reduce(ReduceKind::Max, x, &[-1], true)?;
    let distance = b.sub(largest, x)?;
    let exponential = b.op(Gather { axis: 0 }, &[exponentials, distance])?;
    let share = b.op(Gather { axis: 0 }, &[shares, distance])?;
    let sum = b.reduce(ReduceKind::Sum, share, &[-1], true)?;
    // 31 bits behind the point over 19 are 12, and the result has 8.
    let sixteen = b.number(16.0, sum)?;
    let sum = b.mul(sum, sixteen)?;
    let quotient = b.div(exponential, sum)?;
    let rounded = b.unary(UnaryKind::Round, quotient)?;
    let most = b.tensor_value(number(255.0, DType::F64)?);
    let rounded = b.binary(BinaryKind::Min, rounded, most)?;
    let moved = match lowest {
        0.0 => rounded,
        _ => {
            let lowest = b.number(lowest, rounded)?;
            b.add(rounded, lowest)?
        }
    };
    let moved = b.cast(moved, DType::I32)?;
    Ok(Some(vec![
        b.op(Cast::new(output.unwrap_or(DType::U8)), &[moved])?,
    ]))
}

/// A product of quantised numbers with a bias, which ONNX's operator does not have: the sum in integers, scaled in `float32`.
pub fn qlinear_matmul(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(bias) = node.optional(8) else {
        return Ok(None);
    };
    let factors = [node.input(0)?, node.input(3)?];
    let zeros = [node.optional(2), node.optional(5)];
    let inputs = [Some(factors[0]), Some(factors[1]), zeros[0], zeros[1]];
    let sums = b.step(MatMulInteger::default(), &inputs)?;
    let sums = b.add(sums, bias)?;
    let sums = b.cast(sums, DType::F32)?;
    let scales = [node.input(1)?, node.input(4)?, node.input(6)?];
    let product = b.mul(scales[0], scales[1])?;
    let factor = b.div(product, scales[2])?;
    let scaled = b.mul(sums, factor)?;
    let rounded = b.unary(UnaryKind::Round, scaled)?;
    let zero = node.input(7)?;
    let output = b.dtype(zero).unwrap_or(DType::U8);
    let zero = b.cast(zero, DType::F32)?;
    let moved = b.add(rounded, zero)?;
    let [low, high] = bounds(output)?;
    let y = clipped(b, moved, low, high)?;
    Ok(Some(vec![b.cast(y, output)?]))
}

/// Two quantised tensors combined in `float32`, as the operator says of itself.
pub fn real_binary(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<QLinearBinary>() else {
        return Ok(None);
    };
    let mut operands = Vec::with_capacity(2);
    for (i, affine) in op.operands.into_iter().enumerate() {
        let x = node.input(i)?;
        let scale = b.float(affine.scale)?;
        let zero = b.number(affine.zero.into(), x)?;
        let op = DequantizeLinear { axis: 0, block: 0 };
        operands.push(b.op(op, &[x, scale, zero])?);
    }
    if op.offset != 0.0 {
        operands[1] = b.shifted(operands[1], op.offset)?;
    }
    let y = b.binary(op.kind, operands[0], operands[1])?;
    let scale = b.float(op.result.scale)?;
    let y = b.div(y, scale)?;
    let y = b.unary(UnaryKind::Round, y)?;
    let y = b.shifted(y, op.result.zero)?;
    let y = clipped(b, y, op.range[0].into(), op.range[1].into())?;
    Ok(Some(vec![b.cast(y, op.output)?]))
}
