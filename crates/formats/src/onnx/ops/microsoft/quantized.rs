//! Operators of 8-bit numbers, written out between DequantizeLinear and QuantizeLinear.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Activation, Affine, AveragePool, BinaryKind, Concat, Conv, DequantizeLinear,
    DynamicQuantizeLinear, MatMulInteger, QLinearBinary, QLinearConv, QLinearMatMul,
    QuantizeLinear, ReduceKind, Softmax, SoftmaxKind, UnaryKind, clamped_range,
};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::ops::conv::attributes;
use crate::onnx::ops::pool::window;
use crate::onnx::ops::quant::{dequantize, quantize};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("DequantizeLinear", dequantize),
    ("DynamicQuantizeMatMul", dynamic_quantize_matmul),
    ("MatMulIntegerToFloat", matmul_integer_to_float),
    ("QGemm", qgemm),
    ("QLinearAdd", qlinear_add),
    ("QLinearAveragePool", qlinear_average_pool),
    ("QLinearConcat", qlinear_concat),
    ("QLinearConv", qlinear_conv),
    ("QLinearGlobalAveragePool", qlinear_global_average_pool),
    ("QLinearLeakyRelu", |b| {
        let alpha = b.float_or("alpha", 0.01)?;
        qlinear_unary(b, UnaryKind::LeakyRelu { alpha })
    }),
    ("QLinearMul", |b| qlinear_binary(b, BinaryKind::Mul)),
    ("QLinearReduceMean", qlinear_reduce_mean),
    ("QLinearSigmoid", |b| qlinear_unary(b, UnaryKind::Sigmoid)),
    ("QLinearSoftmax", qlinear_softmax),
    ("QLinearWhere", qlinear_where),
    ("QuantizeLinear", quantize),
]);

/// The real numbers of input `x`, whose scale and zero point are the two inputs after it.
fn real(b: &mut NodeBuilder, x: usize) -> Result<ValueId> {
    let inputs = [Some(b.input(x)?), Some(b.input(x + 1)?), b.optional(x + 2)?];
    let values = b.apply(DequantizeLinear { axis: 1, block: 0 }, &inputs, 1)?;
    Ok(values[0])
}

/// Output 0 from real numbers, scale and zero point being inputs `scale` and the one after it.
fn quantized(b: &mut NodeBuilder, x: ValueId, scale: usize) -> Result<()> {
    let inputs = [Some(x), Some(b.input(scale)?), b.optional(scale + 1)?];
    let op = QuantizeLinear {
        axis: 1,
        block: 0,
        output: None,
    };
    let values = b.apply(op, &inputs, 1)?;
    b.bind(0, values[0])
}

fn qlinear_binary(b: &mut NodeBuilder, kind: BinaryKind) -> Result<()> {
    let (left, right) = (real(b, 0)?, real(b, 3)?);
    let y = b.binary(kind, left, right)?;
    quantized(b, y, 6)
}

/// A constant scale or zero point.
fn constant_number(b: &mut NodeBuilder, i: usize) -> Result<Option<f32>> {
    let Some(v) = b.optional(i)? else {
        return Ok(Some(0.0));
    };
    let tensor = b.constant(v).filter(|t| t.len() == 1);
    let number = tensor.map(|t| t.to_f64s()).transpose()?;
    Ok(number.and_then(|n| n.first().map(|&n| n as f32)))
}

/// `round(a * ratio + b * ratio + offset)`, where the offset holds all zero points. onnxruntime, whose
/// operator this is, rounds so, and later layers tell one step in a single element.
fn qlinear_add(b: &mut NodeBuilder) -> Result<()> {
    let mut numbers = [0f32; 6];
    for (number, i) in numbers.iter_mut().zip([1, 2, 4, 5, 6, 7]) {
        match constant_number(b, i)? {
            Some(n) => *number = n,
            None => return qlinear_binary(b, BinaryKind::Add),
        }
    }
    let [a_scale, a_zero, b_scale, b_zero, scale, zero] = numbers;
    let ratios = [a_scale / scale, b_scale / scale];
    let offset = zero - ratios[0].mul_add(a_zero, ratios[1] * b_zero);
    let left = b.input(0)?;
    let right = b.input(3)?;
    let Some(output) = b.dtype(left) else {
        return qlinear_binary(b, BinaryKind::Add);
    };
    let result = Affine {
        scale: 1.0,
        zero: 0.0,
    };
    let range = clamped_range(output, Activation::None, result)
        .ok_or_else(|| unsupported(format!("the sum of {output}")))?;
    let sum = QLinearBinary {
        kind: BinaryKind::Add,
        operands: ratios.map(|scale| Affine { scale, zero: 0.0 }),
        offset,
        result,
        range,
        output,
    };
    let y = b.op(sum, &[left, right])?;
    b.bind(0, y)
}

fn qlinear_unary(b: &mut NodeBuilder, kind: UnaryKind) -> Result<()> {
    let x = real(b, 0)?;
    let y = b.unary(kind, x)?;
    quantized(b, y, 3)
}

fn qlinear_average_pool(b: &mut NodeBuilder) -> Result<()> {
    let x = real(b, 0)?;
    let op = AveragePool {
        window: window(b)?,
        count_include_pad: b.flag("count_include_pad")?,
        channels_last: b.flag("channels_last")?,
        activation: Activation::None,
    };
    let y = b.op(op, &[x])?;
    quantized(b, y, 3)
}

fn qlinear_reduce_mean(b: &mut NodeBuilder) -> Result<()> {
    let x = real(b, 0)?;
    let axes = match b.ints("axes")? {
        Some(axes) => axes,
        None => (0..b.rank(x)? as i64).collect(),
    };
    let keep_dims = b.int_or("keepdims", 1)? != 0;
    let y = b.reduce(ReduceKind::Mean, x, &axes, keep_dims)?;
    quantized(b, y, 3)
}

/// Inputs: condition, then three for each side, and two for the output.
fn qlinear_where(b: &mut NodeBuilder) -> Result<()> {
    let (condition, yes, no) = (b.input(0)?, real(b, 1)?, real(b, 4)?);
    let y = b.choose(condition, yes, no)?;
    quantized(b, y, 7)
}

fn qlinear_global_average_pool(b: &mut NodeBuilder) -> Result<()> {
    let x = real(b, 0)?;
    let rank = b.rank(x)? as i64;
    let axes: Vec<i64> = if b.flag("channels_last")? {
        (1..rank - 1).collect()
    } else {
        (2..rank).collect()
    };
    let y = b.reduce(ReduceKind::Mean, x, &axes, true)?;
    quantized(b, y, 3)
}

/// Inputs: the output's scale and zero point, then three for each part.
fn qlinear_concat(b: &mut NodeBuilder) -> Result<()> {
    let axis = b
        .int("axis")?
        .ok_or_else(|| invalid("the attribute `axis` is missing"))?;
    let parts = (2..b.input_count())
        .step_by(3)
        .map(|i| real(b, i))
        .collect::<Result<Vec<_>>>()?;
    let y = b.op(Concat { axis }, &parts)?;
    quantized(b, y, 0)
}

fn qlinear_softmax(b: &mut NodeBuilder) -> Result<()> {
    let x = real(b, 0)?;
    let axis = b.int_or("axis", -1)?;
    let last = b.rank(x)? as i64 - 1;
    if b.int_or("opset", 13)? < 13 && axis != -1 && axis != last {
        return Err(unsupported("softmax over several dimensions"));
    }
    let op = Softmax {
        kind: SoftmaxKind::Softmax,
        axis,
        beta: 1.0,
    };
    let y = b.op(op, &[x])?;
    quantized(b, y, 3)
}

/// Integers that stand for real numbers.
pub struct Quantized {
    pub values: ValueId,
    pub zero: Option<ValueId>,
    pub scale: ValueId,
}

impl Quantized {
    /// The node's inputs `values`, `scale` and, where it is there, `zero`.
    pub fn inputs(
        b: &mut NodeBuilder,
        values: usize,
        scale: usize,
        zero: usize,
    ) -> Result<Quantized> {
        Ok(Quantized {
            values: b.input(values)?,
            zero: b.optional(zero)?,
            scale: b.input(scale)?,
        })
    }
}

/// The matrix product in real numbers; exact before it is scaled. The bias `[n]` is one of `int32` in steps of the product of
/// the scales.
pub fn product(
    b: &mut NodeBuilder,
    left: &Quantized,
    right: &Quantized,
    bias: Option<ValueId>,
) -> Result<ValueId> {
    let (a, w) = (Some(left.values), Some(right.values));
    let inputs = [a, w, left.zero, right.zero, bias];
    let sums = b.step(MatMulInteger::default(), &inputs)?;
    let sums = b.cast_like(sums, left.scale)?;
    let scale = b.mul(left.scale, right.scale)?;
    b.mul(sums, scale)
}

/// Output 0: the product, and the bias where there is one.
fn biased_product(
    b: &mut NodeBuilder,
    left: &Quantized,
    right: &Quantized,
    bias: Option<ValueId>,
) -> Result<()> {
    let y = product(b, left, right, None)?;
    let y = match bias {
        Some(bias) => b.add(y, bias)?,
        None => y,
    };
    b.bind(0, y)
}

/// Inputs: x, weights, their scale, their zero point, bias.
fn dynamic_quantize_matmul(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let parts = b.apply(DynamicQuantizeLinear, &[Some(x)], 3)?;
    let x = Quantized {
        values: parts[0],
        zero: Some(parts[2]),
        scale: parts[1],
    };
    let weights = Quantized::inputs(b, 1, 2, 3)?;
    let bias = b.optional(4)?;
    biased_product(b, &x, &weights, bias)
}

/// Inputs: x, weights, scales of both, zero points of both, bias.
fn matmul_integer_to_float(b: &mut NodeBuilder) -> Result<()> {
    let (x, weights) = (
        Quantized::inputs(b, 0, 2, 4)?,
        Quantized::inputs(b, 1, 3, 5)?,
    );
    let bias = b.optional(6)?;
    biased_product(b, &x, &weights, bias)
}

/// QLinearConv of `com.microsoft`: the standard's operator with an attribute for channels-last data.
fn qlinear_conv(b: &mut NodeBuilder) -> Result<()> {
    let weights = b.input(3)?;
    let conv = Conv {
        channels_last: b.flag("channels_last")?,
        ..attributes(b, weights)?
    };
    b.emit_same(QLinearConv { conv })
}

/// Inputs: a, its scale and zero point, b, its scale and zero point, optional bias of `int32` in steps of the product of the
/// scales, scale and zero point of the output, which is real without them.
fn qgemm(b: &mut NodeBuilder) -> Result<()> {
    let mut left = Quantized::inputs(b, 0, 1, 2)?;
    let mut right = Quantized::inputs(b, 3, 4, 5)?;
    if b.flag("transA")? {
        left.values = b.transpose(left.values, &[1, 0])?;
    }
    if b.flag("transB")? {
        right.values = b.transpose(right.values, &[1, 0])?;
    }
    let alpha = b.float_or("alpha", 1.0)?;
    if alpha != 1.0 {
        let alpha = b.number(alpha.into(), left.scale)?;
        left.scale = b.mul(left.scale, alpha)?;
    }
    let bias = match b.optional(6)? {
        Some(bias) => Some(row(b, bias)?),
        None => None,
    };
    if !b.has_input(7) {
        let y = product(b, &left, &right, bias)?;
        return b.bind(0, y);
    }
    let (scale, zero) = (b.input(7)?, b.input(8)?);
    let factors = [left, right].map(|q| [Some(q.values), Some(q.scale), q.zero]);
    let mut inputs = factors.concat();
    inputs.extend([Some(scale), Some(zero), bias]);
    b.emit(QLinearMatMul::default(), &inputs)
}

/// A bias that is the same for all rows, as a vector.
fn row(b: &mut NodeBuilder, bias: ValueId) -> Result<ValueId> {
    match b.shape(bias).as_deref() {
        Some([_]) => Ok(bias),
        Some([1, n]) => b.reshape(bias, &[*n as i64]),
        _ => Err(unsupported("a bias that is no row of the result")),
    }
}
