//! Operators from quantised tensors to quantised tensors with real scales: sums are exact, and scaled in
//! `float32` ([`super::fixed`] has those that scale in integers).

use super::conv::{Conv, conv_shape};
use super::elementwise::BinaryKind;
use super::matmul::matmul_cost;
use super::quant::{WHOLE_BIAS, product_shape};
use super::rules::{BYTES, FLOATS, broadcast, fact};
use crate::Reflect;
use crate::dtype::DType;
use crate::error::{Result, value_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Activation, Flow, InferContext, Operator, Spatial};

/// Inputs: a, its scale and zero point, b, its scale and zero point, the output's scale and zero point,
/// optional `int32` bias `[n]` in steps of the product of the scales of a and b. The activation is one
/// that clamps.
#[derive(Clone, Debug, Default, PartialEq, Reflect)]
pub struct QLinearMatMul {
    pub activation: Activation,
}

/// Inputs as in ONNX QLinearConv. The activation is one that clamps.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct QLinearConv {
    pub conv: Conv,
}

/// Two quantised tensors, broadcast, combined in `float32`: to the bit what DequantizeLinear of both,
/// [`Binary`] and QuantizeLinear give. Inputs: two of `int8` or `uint8`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct QLinearBinary {
    /// Add, Sub, Mul, Max or Min.
    pub kind: BinaryKind,
    pub operands: [Affine; 2],
    /// Added to the second operand's real numbers.
    pub offset: f32,
    pub result: Affine,
    /// The smallest and the largest result.
    pub range: [f32; 2],
    pub output: DType,
}

/// The real number of `x` is `(x - zero) * scale`.
#[derive(Clone, Copy, Debug, PartialEq, Reflect)]
pub struct Affine {
    pub scale: f32,
    pub zero: f32,
}

/// The smallest and the largest number of `output`, `int8` or `uint8`, that `activation` leaves of
/// numbers with this scale and zero point; `None` where it does more than clamp.
///
/// Quantisation never exchanges two numbers, so that clamping before it and after it is the same.
pub fn clamped_range(output: DType, activation: Activation, result: Affine) -> Option<[f32; 2]> {
    let [low, high] = match output {
        DType::I8 => [-128.0, 127.0],
        DType::U8 => [0.0, 255.0],
        _ => return None,
    };
    let quantised = |real: f32| match real {
        f32::NEG_INFINITY => low,
        f32::INFINITY => high,
        _ => ((real / result.scale).round_ties_even() + result.zero).clamp(low, high),
    };
    Some(activation.bounds()?.map(quantised))
}

/// Checks one quantised operand, whose scale and zero point follow it.
fn operand(ctx: &InferContext, data: usize) -> Result<()> {
    ctx.typed(data, &BYTES)?;
    ctx.typed(data + 1, &FLOATS)?;
    ctx.common_type([data, data + 2])?;
    Ok(())
}

fn check_clamp(activation: Activation) -> Result<()> {
    match activation.bounds() {
        Some(_) => Ok(()),
        None => Err(value_error(format!("{activation:?} of quantised numbers"))),
    }
}

impl Operator for QLinearMatMul {
    fn name(&self) -> &'static str {
        "QLinearMatMul"
    }

    signature! {
        (
            a, a_scale, optional a_zero_point, b, b_scale, optional b_zero_point, output_scale,
            output_zero_point, optional bias
        ) -> (output)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        check_clamp(self.activation)?;
        operand(ctx, 0)?;
        operand(ctx, 3)?;
        ctx.typed(6, &FLOATS)?;
        let dtype = ctx.typed(7, &BYTES)?;
        ctx.typed_optional(8, &WHOLE_BIAS)?;
        let shape = product_shape(ctx, 0, 3)?;
        if let Some(columns) = shape.as_ref().and_then(|s| s.0.last()) {
            ctx.vector(8, columns)?;
        }
        Ok(vec![fact(dtype, shape)])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        matmul_cost(inputs, outputs)
    }
}

impl Operator for QLinearConv {
    fn name(&self) -> &'static str {
        "QLinearConv"
    }

    signature! {
        (
            data, data_scale, optional data_zero_point, weights, weights_scale,
            optional weights_zero_point, output_scale, output_zero_point, optional bias
        ) -> (output)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        check_clamp(self.conv.activation)?;
        operand(ctx, 0)?;
        operand(ctx, 3)?;
        ctx.typed(6, &FLOATS)?;
        let dtype = ctx.typed(7, &BYTES)?;
        ctx.typed_optional(8, &WHOLE_BIAS)?;
        let shape = match (ctx.shape(0)?, ctx.shape(3)?) {
            (Some(x), Some(w)) => {
                let shape = conv_shape(&self.conv, x, w)?;
                ctx.vector(8, &w.0[0])?;
                Some(shape)
            }
            _ => None,
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let weights = inputs.get(3).cloned().flatten();
        let data = inputs.first().cloned().flatten();
        Operator::cost(&self.conv, &[data, weights], outputs)
    }

    fn spatial(&self) -> Option<Spatial> {
        let turned = self.conv.on_channels_last();
        Some(Spatial::new(turned.map(|conv| QLinearConv { conv }), true))
    }
}

impl Operator for QLinearBinary {
    fn name(&self) -> &'static str {
        "QLinearBinary"
    }

    signature! { (a, b) -> (output) }

    fn flow(&self) -> Flow {
        Flow::joined(false)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        for i in [0, 1] {
            ctx.typed(i, &BYTES)?;
        }
        BYTES.check(0, Some(self.output))?;
        use BinaryKind::{Add, Max, Min, Mul, Sub};
        if !matches!(self.kind, Add | Sub | Mul | Max | Min) {
            return Err(value_error(format!("{:?} of quantised numbers", self.kind)));
        }
        let shape = match (ctx.shape(0)?, ctx.shape(1)?) {
            (Some(a), Some(b)) => Some(broadcast(a, b)?),
            _ => None,
        };
        Ok(vec![fact(Some(self.output), shape)])
    }
}
