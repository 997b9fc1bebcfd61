//! Quantisation and products of quantised tensors. Scales and zero points are per tensor, or per
//! `axis`, or per block of `block` elements along it.

use super::*;

/// Inputs: x, scale, optional zero point. The output has the zero point's type, else `output`.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizeLinear {
    pub axis: i64,
    pub block: usize,
    pub output: Option<DType>,
}

/// Inputs: x, scale, optional zero point. The output has the scale's type.
#[derive(Clone, Debug, PartialEq)]
pub struct DequantizeLinear {
    pub axis: i64,
    pub block: usize,
}

/// Outputs: `uint8` values, scale, zero point.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicQuantizeLinear;

/// Inputs: a, b, optional zero points; `int32` output.
#[derive(Clone, Debug, PartialEq)]
pub struct MatMulInteger;

/// Inputs: x, w, optional zero points; `int32` output.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvInteger {
    pub conv: Conv,
}

/// Inputs: a, its scale and zero point, b, its scale and zero point, the output's scale and zero point.
#[derive(Clone, Debug, PartialEq)]
pub struct QLinearMatMul;

/// Inputs as in ONNX QLinearConv.
#[derive(Clone, Debug, PartialEq)]
pub struct QLinearConv {
    pub conv: Conv,
}

impl Operator for QuantizeLinear {
    fn name(&self) -> &'static str {
        "QuantizeLinear"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for DequantizeLinear {
    fn name(&self) -> &'static str {
        "DequantizeLinear"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for DynamicQuantizeLinear {
    fn name(&self) -> &'static str {
        "DynamicQuantizeLinear"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for MatMulInteger {
    fn name(&self) -> &'static str {
        "MatMulInteger"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for ConvInteger {
    fn name(&self) -> &'static str {
        "ConvInteger"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for QLinearMatMul {
    fn name(&self) -> &'static str {
        "QLinearMatMul"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for QLinearConv {
    fn name(&self) -> &'static str {
        "QLinearConv"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
