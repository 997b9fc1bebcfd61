//! Matrix products.

use super::*;

/// Inputs: a, b, optional bias that broadcasts to the last dimension. numpy's `matmul` with
/// broadcasting of the leading dimensions, then the bias, then the activation.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MatMul {
    /// `b` is `[.., n, k]`.
    pub transpose_b: bool,
    /// Multiplies the product before the bias.
    pub alpha: Option<f32>,
    pub activation: Activation,
}

/// `alpha * A' B' + beta * C`; inputs a, b (two dimensions), optional c that broadcasts to the output.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    pub alpha: f32,
    pub beta: f32,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub activation: Activation,
}

/// Einstein summation, the equation without spaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Einsum {
    pub equation: String,
}

/// The determinant of the last two dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Det;

impl Operator for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Gemm {
    fn name(&self) -> &'static str {
        "Gemm"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Einsum {
    fn name(&self) -> &'static str {
        "Einsum"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Det {
    fn name(&self) -> &'static str {
        "Det"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
