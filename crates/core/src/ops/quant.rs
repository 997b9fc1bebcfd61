//! Quantisation, and products of quantised tensors in `int32`. Scales and zero points are per tensor, or
//! per `axis`, or per block of `block` elements along it.

use super::axes::normalize_axis;
use super::conv::{Conv, conv_shape};
use super::fixed::{Requantize, SINGLE};
use super::matmul::{Product, matmul_cost};
use super::rules::{
    BYTES, FLOATS, InputValues, QUANTIZED, Types, fact, some_of, too_large, unify, unify_shapes,
};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, dtype_error, shape_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Flow, InferContext, Operator, Spatial};

/// Inputs: x, scale, optional zero point. The output has the zero point's type, else `output`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct QuantizeLinear {
    pub axis: i64,
    pub block: usize,
    pub output: Option<DType>,
}

/// Inputs: x, scale, optional zero point. The output has the scale's type.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct DequantizeLinear {
    pub axis: i64,
    pub block: usize,
}

/// Outputs: `uint8` values, scale, zero point.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct DynamicQuantizeLinear;

/// Inputs: a, b, optional zero points, optional `int32` bias `[n]`; `int32` output unless it is
/// quantised again.
#[derive(Clone, Debug, Default, PartialEq, Reflect)]
pub struct MatMulInteger {
    pub requantize: Option<Requantize>,
}

/// `sum * (a_scale * b_scale) + bias`, where `sum` is what [`MatMulInteger`] gives, as `float32`. Each operation is rounded to
/// `float32`: none are contracted.
///
/// Inputs: a, b (`int8` or `uint8`), the scale of a, of one element, the scale of b, of one element or `[n]`, optional zero
/// points, optional bias `[n]`; scales, bias and output are `float32`. `n` is the last dimension of a `b` that is no vector.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct MatMulIntegerToFloat;

/// Inputs: x, w, optional zero points, optional `int32` bias `[m]`; `int32` output unless it is
/// quantised again.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ConvInteger {
    pub conv: Conv,
    pub requantize: Option<Requantize>,
}

/// Which element of the scale belongs to an element of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// One scale for all.
    Tensor,
    /// One scale for each of `channels` along an axis with `inner` elements behind it.
    Axis { channels: usize, inner: usize },
    /// One scale for `block` consecutive elements along an axis of `length`.
    Block {
        block: usize,
        length: usize,
        inner: usize,
    },
}

impl Granularity {
    /// The granularity, from the shapes of data and scale. A scale of one element counts for all.
    ///
    /// # Errors
    /// `Shape` where they do not fit each other.
    pub fn new(x: &[usize], scale: &[usize], axis: i64, block: usize) -> Result<Granularity> {
        check_scale(&Shape::fixed(x), &Shape::fixed(scale), axis, block)?;
        if scale.is_empty() || (scale == [1] && block == 0) {
            return Ok(Granularity::Tensor);
        }
        let axis = normalize_axis(axis, x.len())?;
        let inner = x[axis + 1..]
            .iter()
            .try_fold(1usize, |n, &d| n.checked_mul(d))
            .ok_or_else(too_large)?;
        Ok(if block == 0 {
            let channels = x[axis];
            Granularity::Axis { channels, inner }
        } else {
            let length = x[axis];
            Granularity::Block {
                block,
                length,
                inner,
            }
        })
    }

    /// The element of the scale for element `flat` of the data, both row-major.
    pub fn index(self, flat: usize) -> usize {
        match self {
            Granularity::Tensor => 0,
            Granularity::Axis { channels, inner } => flat / inner % channels,
            Granularity::Block {
                block,
                length,
                inner,
            } => {
                let (outer, rest) = (flat / (length * inner), flat % (length * inner));
                let blocks = length.div_ceil(block);
                (outer * blocks + rest / inner / block) * inner + rest % inner
            }
        }
    }
}

/// `Shape` where a scale (or zero point) does not fit the data.
fn check_scale(x: &Shape, scale: &Shape, axis: i64, block: usize) -> Result<()> {
    let one = scale.elements() == Some(1) && scale.rank() <= 1;
    if block == 0 {
        if one {
            return Ok(());
        }
        if scale.rank() != 1 {
            return Err(shape_error("a scale must be a scalar or a vector").with_got(scale));
        }
        if scale.0[0].known().is_none() {
            // It may turn out to be one element, for which the axis does not count.
            return Ok(());
        }
        let axis = normalize_axis(axis, x.rank())?;
        unify(&scale.0[0], &x.0[axis], || "the length of the scale".into())?;
        return Ok(());
    }
    let axis = normalize_axis(axis, x.rank())?;
    let mut expected = x.clone();
    expected.0[axis] = x.0[axis].map(|n| Some(n.div_ceil(block)));
    unify_shapes(scale, &expected, || "the scale of the blocks".into())?;
    Ok(())
}

/// Checks scale and zero point, inputs 1 and 2, of data with the shape of input 0.
fn check_parameters(ctx: &InferContext, axis: i64, block: usize) -> Result<()> {
    ctx.typed(1, &FLOATS)?;
    let Some(x) = ctx.shape(0)? else {
        return Ok(());
    };
    for i in [1, 2] {
        if let Some(s) = ctx.shape_optional(i) {
            check_scale(x, s, axis, block).map_err(|e| e.with_input(i))?;
        }
    }
    Ok(())
}

const TO_QUANTIZE: Types = Types::new("a floating-point type or int32", |d| {
    d.is_float() || d == DType::I32
});

impl Operator for QuantizeLinear {
    fn name(&self) -> &'static str {
        "QuantizeLinear"
    }

    signature! { (data, scale, optional zero_point) -> (output) }

    fn flow(&self) -> Flow {
        Flow::MAPPED_ALONG_AXIS
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &TO_QUANTIZE)?;
        check_parameters(ctx, self.axis, self.block)?;
        let zero_point = ctx.typed_optional(2, &QUANTIZED)?;
        let output = match (ctx.has(2), self.output) {
            (true, Some(asked)) if zero_point.is_some_and(|z| z != asked) => {
                return Err(
                    dtype_error("the zero point has another type than the output")
                        .with_expected(asked)
                        .with_got(zero_point.unwrap_or(asked)),
                );
            }
            (true, _) => zero_point.or(self.output),
            (false, asked) => Some(asked.unwrap_or(DType::U8)),
        };
        QUANTIZED.check(2, output)?;
        Ok(vec![fact(output, ctx.shape(0)?.cloned())])
    }
}

impl Operator for DequantizeLinear {
    fn name(&self) -> &'static str {
        "DequantizeLinear"
    }

    signature! { (data, scale, optional zero_point) -> (output) }

    fn flow(&self) -> Flow {
        Flow::MAPPED_ALONG_AXIS
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &QUANTIZED)?;
        ctx.common_type([0, 2])?;
        check_parameters(ctx, self.axis, self.block)?;
        Ok(vec![fact(ctx.dtype(1)?, ctx.shape(0)?.cloned())])
    }
}

impl Operator for DynamicQuantizeLinear {
    fn name(&self) -> &'static str {
        "DynamicQuantizeLinear"
    }

    signature! { (data) -> (output, optional scale, optional zero_point) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        let values = fact(Some(DType::U8), ctx.shape(0)?.cloned());
        let scale = Fact::fixed(DType::F32, &[]);
        let zero_point = Fact::fixed(DType::U8, &[]);
        Ok(some_of(ctx, [values, scale, zero_point]))
    }
}

/// The shape of a product of inputs `a` and `b`.
pub(super) fn product_shape(ctx: &InferContext, a: usize, b: usize) -> Result<Option<Shape>> {
    match (ctx.shape(a)?, ctx.shape(b)?) {
        (Some(a), Some(b)) => Ok(Some(Product::new(a, b, false)?.output)),
        _ => Ok(None),
    }
}

/// The output of an integer product: `int32`, or what the sums are quantised to; several factors
/// must find their channels last.
fn sums(
    ctx: &InferContext,
    shape: Option<Shape>,
    channels_last: bool,
    requantize: Option<&Requantize>,
) -> Result<Vec<Fact>> {
    ctx.typed_optional(4, &WHOLE_BIAS)?;
    if let (Some(channels), true) = (shape.as_ref().and_then(|s| s.0.last()), channels_last) {
        ctx.vector(4, channels)?;
    }
    Ok(vec![match requantize {
        None => fact(Some(DType::I32), shape),
        Some(r) if r.factors.len() > 1 && !channels_last => {
            return Err(shape_error(
                "a factor for each of channels that are not last",
            ));
        }
        Some(r) => r.check(shape)?,
    }])
}

pub(super) const WHOLE_BIAS: Types = Types::new("int32", |d| d == DType::I32);

impl Operator for MatMulInteger {
    fn name(&self) -> &'static str {
        "MatMulInteger"
    }

    signature! { (a, b, optional a_zero_point, optional b_zero_point, optional bias) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        for (data, zero_point) in [(0, 2), (1, 3)] {
            ctx.typed(data, &BYTES)?;
            ctx.common_type([data, zero_point])?;
        }
        let shape = product_shape(ctx, 0, 1)?;
        sums(ctx, shape, true, self.requantize.as_ref())
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        matmul_cost(inputs, outputs)
    }
}

impl Operator for MatMulIntegerToFloat {
    fn name(&self) -> &'static str {
        "MatMulIntegerToFloat"
    }

    signature! {
        (
            a, b, a_scale, b_scale, optional a_zero_point, optional b_zero_point, optional bias
        ) -> (output)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        for (data, zero_point) in [(0, 4), (1, 5)] {
            ctx.typed(data, &BYTES)?;
            ctx.common_type([data, zero_point])?;
        }
        for scale in [2, 3] {
            ctx.typed(scale, &SINGLE)?;
        }
        ctx.typed_optional(6, &SINGLE)?;
        ctx.scalar(2)?;
        if let Some(b) = ctx.shape(1)? {
            let one = Dim::Known(1);
            let columns = match b.0.as_slice() {
                [.., _, n] => n,
                _ => &one,
            };
            ctx.vector(6, columns)?;
            if ctx.shape(3)?.is_some_and(|s| s.elements() != Some(1)) {
                ctx.vector(3, columns)?;
            }
        }
        Ok(vec![fact(Some(DType::F32), product_shape(ctx, 0, 1)?)])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        matmul_cost(inputs, outputs)
    }
}

impl Operator for ConvInteger {
    fn name(&self) -> &'static str {
        "ConvInteger"
    }

    signature! {
        (
            data, weights, optional data_zero_point, optional weights_zero_point, optional bias
        ) -> (output)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        for (data, zero_point) in [(0, 2), (1, 3)] {
            ctx.typed(data, &BYTES)?;
            ctx.common_type([data, zero_point])?;
        }
        let shape = match (ctx.shape(0)?, ctx.shape(1)?) {
            (Some(x), Some(w)) => {
                let shape = conv_shape(&self.conv, x, w)?;
                ctx.vector(4, &w.0[0])?;
                Some(shape)
            }
            _ => None,
        };
        sums(
            ctx,
            shape,
            self.conv.channels_last,
            self.requantize.as_ref(),
        )
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        Operator::cost(&self.conv, inputs, outputs)
    }

    fn spatial(&self) -> Option<Spatial> {
        // Several factors find their channels last already.
        let turned = |conv| ConvInteger {
            conv,
            requantize: self.requantize.clone(),
        };
        Some(Spatial::new(self.conv.on_channels_last().map(turned), true))
    }
}
