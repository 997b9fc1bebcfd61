//! Normalisations.

use super::*;

/// Inference: inputs x, scale, bias, mean, variance (each `[c]`).
#[derive(Clone, Debug, PartialEq)]
pub struct BatchNorm {
    pub epsilon: f32,
    pub channels_last: bool,
}

/// Inputs: x, scale, optional bias. Outputs: y, optional mean, optional inverse deviation.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorm {
    pub axis: i64,
    pub epsilon: f32,
}

/// Inputs: x, scale.
#[derive(Clone, Debug, PartialEq)]
pub struct RmsNorm {
    pub axis: i64,
    pub epsilon: f32,
}

/// Inputs: x `[n, c, ..]`, scale `[c]`, bias `[c]`.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceNorm {
    pub epsilon: f32,
}

/// Inputs: x `[n, c, ..]`, scale `[c]`, bias `[c]`.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupNorm {
    pub groups: usize,
    pub epsilon: f32,
}

/// Divides by the p-norm along `axis`.
#[derive(Clone, Debug, PartialEq)]
pub struct LpNorm {
    pub axis: i64,
    pub p: u32,
}

/// Local response normalisation across channels, NCHW.
#[derive(Clone, Debug, PartialEq)]
pub struct Lrn {
    pub alpha: f32,
    pub beta: f32,
    pub bias: f32,
    pub size: usize,
    pub channels_last: bool,
}

/// `(x - mean) / deviation` over `axes`.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanVarianceNorm {
    pub axes: Vec<i64>,
}

impl Operator for BatchNorm {
    fn name(&self) -> &'static str {
        "BatchNormalization"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for LayerNorm {
    fn name(&self) -> &'static str {
        "LayerNormalization"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for RmsNorm {
    fn name(&self) -> &'static str {
        "RMSNormalization"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for InstanceNorm {
    fn name(&self) -> &'static str {
        "InstanceNormalization"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for GroupNorm {
    fn name(&self) -> &'static str {
        "GroupNormalization"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for LpNorm {
    fn name(&self) -> &'static str {
        "LpNormalization"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Lrn {
    fn name(&self) -> &'static str {
        "LRN"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for MeanVarianceNorm {
    fn name(&self) -> &'static str {
        "MeanVarianceNormalization"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
