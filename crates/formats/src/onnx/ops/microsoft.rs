//! The `com.microsoft` operators that onnxruntime's optimiser and quantiser leave in files, written
//! out in standard ones.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Activation, Affine, AveragePool, BinaryKind, Concat, DequantizeLinear, DynamicQuantizeLinear,
    Gemm, LayerNorm, MatMul, MatMulInteger, QLinearBinary, QuantizeLinear, ReduceKind, RmsNorm,
    Softmax, SoftmaxKind, UnaryKind, clamped_range,
};

use super::OpTable;
use super::conv::attributes;
use super::pool::window;
use super::rotary::rotated;
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub const DOMAIN: &str = "com.microsoft";

pub fn register(table: &mut OpTable) {
    let mut add = |op, map| table.add_in(DOMAIN, op, map);
    add("QLinearAdd", qlinear_add);
    add("QLinearMul", |b| qlinear_binary(b, BinaryKind::Mul));
    add("QLinearSigmoid", |b| qlinear_unary(b, UnaryKind::Sigmoid));
    add("QLinearLeakyRelu", |b| {
        let alpha = b.float_or("alpha", 0.01)?;
        qlinear_unary(b, UnaryKind::LeakyRelu { alpha })
    });
    add("QLinearAveragePool", qlinear_average_pool);
    add("QLinearGlobalAveragePool", qlinear_global_average_pool);
    add("QLinearReduceMean", qlinear_reduce_mean);
    add("QLinearWhere", qlinear_where);
    add("QLinearConcat", qlinear_concat);
    add("QLinearSoftmax", qlinear_softmax);
    add("QuantizeLinear", super::quant::quantize);
    add("DequantizeLinear", super::quant::dequantize);
    add("DynamicQuantizeMatMul", dynamic_quantize_matmul);
    add("MatMulIntegerToFloat", |b| {
        let (x, scale, zero) = (b.input(0)?, b.input(2)?, b.optional(4)?);
        matmul_integer(b, [Some(x), zero], scale, 3, 5, 6)
    });

    add("FusedConv", fused_conv);
    add("NhwcConv", nhwc_conv);
    add("NhwcFusedConv", nhwc_conv);
    add("FusedGemm", fused_gemm);
    add("FusedMatMul", fused_matmul);
    add("TransposeMatMul", fused_matmul);

    add("Gelu", |b| biased(b, UnaryKind::Gelu { tanh: false }));
    add("BiasGelu", |b| biased(b, UnaryKind::Gelu { tanh: false }));
    add("FastGelu", |b| biased(b, UnaryKind::Gelu { tanh: true }));
    add("QuickGelu", |b| {
        let alpha = b.float_or("alpha", 1.702)?;
        let x = b.input(0)?;
        let y = b.unary(UnaryKind::Swish { alpha }, x)?;
        b.bind(0, y)
    });
    add("SkipLayerNormalization", skip_layer_norm);
    add("SkipSimplifiedLayerNormalization", skip_rms_norm);
    add("RotaryEmbedding", rotary_embedding);
    // These two stand in the standard's domain though the standard does not have them.
    table.add("SimplifiedLayerNormalization", |b| {
        let axis = b.int_or("axis", -1)?;
        let epsilon = b.float_or("epsilon", 1e-5)?;
        b.only_outputs(1)?;
        b.emit_same(RmsNorm { axis, epsilon })
    });
    table.add("SkipLayerNormalization", skip_layer_norm);
}

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
    let y = b.reduce(ReduceKind::Mean, x, &axes, b.int_or("keepdims", 1)? != 0)?;
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

fn dynamic_quantize_matmul(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let parts = b.apply(DynamicQuantizeLinear, &[Some(x)], 3)?;
    matmul_integer(b, [Some(parts[0]), Some(parts[2])], parts[1], 2, 3, 4)
}

/// The product of quantised `a` (values, zero point) and input 1, in real numbers; the scale, zero
/// point and bias of the latter are inputs `scale`, `zero` and `bias`.
fn matmul_integer(
    b: &mut NodeBuilder,
    a: [Option<ValueId>; 2],
    a_scale: ValueId,
    scale: usize,
    zero: usize,
    bias: usize,
) -> Result<()> {
    let weights = b.input(1)?;
    let zero = b.optional(zero)?;
    let sums = b.apply(
        MatMulInteger::default(),
        &[a[0], Some(weights), a[1], zero],
        1,
    )?[0];
    let sums = b.cast_like(sums, a_scale)?;
    let scale = b.input(scale)?;
    let scale = b.mul(a_scale, scale)?;
    let y = b.mul(sums, scale)?;
    let y = match b.optional(bias)? {
        Some(bias) => b.add(y, bias)?,
        None => y,
    };
    b.bind(0, y)
}

/// The activation of a fused operator, applied to `x`.
fn activated(b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
    let params = b.floats("activation_params")?.unwrap_or_default();
    let alpha = |b: &NodeBuilder, i: usize, default: f32| -> Result<f32> {
        let name = ["activation_alpha", "activation_beta"][i];
        Ok(params.get(i).copied().or(b.float(name)?).unwrap_or(default))
    };
    let kind = match b.text_or("activation", "")? {
        "" => return Ok(x),
        "Relu" => UnaryKind::Relu,
        "Tanh" => UnaryKind::Tanh,
        "Sigmoid" => UnaryKind::Sigmoid,
        "LeakyRelu" => UnaryKind::LeakyRelu {
            alpha: alpha(b, 0, 0.01)?,
        },
        "HardSigmoid" => UnaryKind::HardSigmoid {
            alpha: alpha(b, 0, 0.2)?,
            beta: alpha(b, 1, 0.5)?,
        },
        "Clip" => UnaryKind::Clip {
            min: alpha(b, 0, f32::MIN)?.into(),
            max: alpha(b, 1, f32::MAX)?.into(),
        },
        other => return Err(unknown("activation", other)),
    };
    b.unary(kind, x)
}

fn fused_conv(b: &mut NodeBuilder) -> Result<()> {
    let weights = b.input(1)?;
    let conv = attributes(b, weights)?;
    let inputs = [
        Some(b.input(0)?),
        Some(weights),
        b.optional(2)?,
        b.optional(3)?,
    ];
    let y = b.apply(conv, &inputs, 1)?[0];
    let y = activated(b, y)?;
    b.bind(0, y)
}

/// Data is `[n, h, w, c]`, weights `[m, h, w, c / groups]`.
fn nhwc_conv(b: &mut NodeBuilder) -> Result<()> {
    let weights = b.input(1)?;
    let conv = kilim_core::ops::Conv {
        channels_last: true,
        ..attributes(b, weights)?
    };
    let axes = b.rank(weights)?;
    let mut perm = vec![0, axes - 1];
    perm.extend(1..axes - 1);
    let weights = b.transpose(weights, &perm)?;
    let inputs = [
        Some(b.input(0)?),
        Some(weights),
        b.optional(2)?,
        b.optional(3)?,
    ];
    let y = b.apply(conv, &inputs, 1)?[0];
    let y = activated(b, y)?;
    b.bind(0, y)
}

fn fused_gemm(b: &mut NodeBuilder) -> Result<()> {
    let op = Gemm {
        alpha: b.float_or("alpha", 1.0)?,
        beta: b.float_or("beta", 1.0)?,
        transpose_a: b.flag("transA")?,
        transpose_b: b.flag("transB")?,
        activation: Activation::None,
    };
    let inputs = b.inputs_from(0)?;
    let y = b.apply(op, &inputs, 1)?[0];
    let y = activated(b, y)?;
    b.bind(0, y)
}

fn fused_matmul(b: &mut NodeBuilder) -> Result<()> {
    if b.flag("transBatchA")? || b.flag("transBatchB")? {
        return Err(unsupported("transposed batch dimensions"));
    }
    let mut left = b.input(0)?;
    let right = b.input(1)?;
    if b.flag("transA")? {
        let rank = b.rank(left)?;
        let mut perm: Vec<usize> = (0..rank).collect();
        if rank >= 2 {
            perm.swap(rank - 1, rank - 2);
            left = b.transpose(left, &perm)?;
        }
    }
    let op = MatMul {
        transpose_b: b.flag("transB")?,
        alpha: b.float("alpha")?.filter(|a| *a != 1.0),
        ..MatMul::default()
    };
    let y = b.op(op, &[left, right])?;
    b.bind(0, y)
}

fn biased(b: &mut NodeBuilder, kind: UnaryKind) -> Result<()> {
    let mut x = b.input(0)?;
    if let Some(bias) = b.optional(1)? {
        x = b.add(x, bias)?;
    }
    let y = b.unary(kind, x)?;
    b.bind(0, y)
}

/// `input + skip`, and input `bias` if it is there: the sum that is normalised, and output 3.
fn skipped(b: &mut NodeBuilder, bias: usize) -> Result<ValueId> {
    let (x, skip) = (b.input(0)?, b.input(1)?);
    let mut sum = b.add(x, skip)?;
    if let Some(bias) = b.optional(bias)? {
        sum = b.add(sum, bias)?;
    }
    b.bind(3, sum)?;
    Ok(sum)
}

fn skip_layer_norm(b: &mut NodeBuilder) -> Result<()> {
    let sum = skipped(b, 4)?;
    let epsilon = b.float_or("epsilon", 1e-12)?;
    let inputs = [Some(sum), Some(b.input(2)?), b.optional(3)?];
    let y = b.apply(LayerNorm { axis: -1, epsilon }, &inputs, 1)?;
    b.bind(0, y[0])
}

fn skip_rms_norm(b: &mut NodeBuilder) -> Result<()> {
    let sum = skipped(b, 3)?;
    let epsilon = b.float_or("epsilon", 1e-12)?;
    let scale = b.input(2)?;
    let y = b.op(RmsNorm { axis: -1, epsilon }, &[sum, scale])?;
    b.bind(0, y)
}

/// Inputs: x `[batch, sequence, heads * size]` or `[batch, heads, sequence, size]`, positions
/// `[batch, sequence]` or a first position `[1]`, cosines, sines.
fn rotary_embedding(b: &mut NodeBuilder) -> Result<()> {
    let (x, mut positions) = (b.input(0)?, b.input(1)?);
    let (cos, sin) = (b.input(2)?, b.input(3)?);
    let packed = b.rank(x)? == 3;
    if b.rank(positions)? < 2 {
        let length = b.dim(x, if packed { 1 } else { 2 })?;
        let steps = b.iota(length)?;
        let steps = b.unsqueeze(steps, &[0])?;
        let positions_64 = b.cast(positions, DType::I64)?;
        positions = b.add(steps, positions_64)?;
    }
    let gather = kilim_core::ops::Gather { axis: 0 };
    let cos = b.op(gather.clone(), &[cos, positions])?;
    let sin = b.op(gather, &[sin, positions])?;
    let interleaved = b.flag("interleaved")?;
    let part = super::rotary::part(b)?;
    if !packed {
        let y = rotated(b, x, [cos, sin], 1, part, interleaved)?;
        return b.bind(0, y);
    }
    let split = match b.count("num_heads", Some(0))? {
        0 => {
            // The tables tell how long a head is.
            let half = b.dim(cos, -1)?;
            let (rest, two) = (b.i64s(&[0, 0, -1])?, b.i64s(&[2])?);
            let size = b.mul(half, two)?;
            let shape = b.vector(&[rest, size])?;
            b.reshape_to(x, shape)?
        }
        heads => b.reshape(x, &[0, 0, heads as i64, -1])?,
    };
    let y = rotated(b, split, [cos, sin], 2, part, interleaved)?;
    let y = b.reshape(y, &[0, 0, -1])?;
    b.bind(0, y)
}
