//! Operators that make tensors from shapes and scalars.

use super::*;

/// The shape as `int64[rank]`, of dimensions `start..end`.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeOf {
    pub start: i64,
    pub end: Option<i64>,
}

/// The number of elements as an `int64` scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Size;

/// Input: shape. Every element is `value` (one element).
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantOfShape {
    pub value: Tensor,
}

/// Inputs: start, limit, delta (scalars).
#[derive(Clone, Debug, PartialEq)]
pub struct Range;

/// Ones on diagonal `k` of a matrix with the shape of the input.
#[derive(Clone, Debug, PartialEq)]
pub struct EyeLike {
    pub dtype: Option<DType>,
    pub k: i64,
}

impl Operator for ShapeOf {
    fn name(&self) -> &'static str {
        "Shape"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Size {
    fn name(&self) -> &'static str {
        "Size"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for ConstantOfShape {
    fn name(&self) -> &'static str {
        "ConstantOfShape"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Range {
    fn name(&self) -> &'static str {
        "Range"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for EyeLike {
    fn name(&self) -> &'static str {
        "EyeLike"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
