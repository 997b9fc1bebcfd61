//! Operators that read or write by index.

use super::*;

/// Inputs: data, indices (negative counts from the end). Output: indices in place of `axis`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    pub axis: i64,
}

/// Inputs: data, indices of the same rank.
#[derive(Clone, Debug, PartialEq)]
pub struct GatherElements {
    pub axis: i64,
}

/// Inputs: data, indices whose last dimension are coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct GatherNd {
    pub batch_dims: usize,
}

/// What a scatter does where it writes on something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScatterReduction {
    None,
    Add,
    Mul,
    Max,
    Min,
}

/// Inputs: data, indices, updates.
#[derive(Clone, Debug, PartialEq)]
pub struct ScatterElements {
    pub axis: i64,
    pub reduction: ScatterReduction,
}

/// Inputs: data, indices, updates.
#[derive(Clone, Debug, PartialEq)]
pub struct ScatterNd {
    pub reduction: ScatterReduction,
}

/// Inputs: cache, update, optional write indices `[batch]` (opset 24).
#[derive(Clone, Debug, PartialEq)]
pub struct TensorScatter {
    pub axis: i64,
    pub circular: bool,
}

/// Inputs: indices, depth, values `[off, on]`.
#[derive(Clone, Debug, PartialEq)]
pub struct OneHot {
    pub axis: i64,
}

/// The indices of elements that are not zero, `int64[rank, n]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NonZero;

/// Inputs: data, condition `bool[n]`. Without an axis the data is flattened.
#[derive(Clone, Debug, PartialEq)]
pub struct Compress {
    pub axis: Option<i64>,
}

/// Outputs: values, first indices, inverse indices, counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Unique {
    pub axis: Option<i64>,
    pub sorted: bool,
}

/// Inputs: boxes `[batch, n, 4]`, scores `[batch, classes, n]`, optional max boxes, IoU threshold,
/// score threshold. Output `int64[m, 3]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NonMaxSuppression {
    /// Boxes are centre and size instead of two corners.
    pub center_point_box: bool,
}

impl Operator for Gather {
    fn name(&self) -> &'static str {
        "Gather"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for GatherElements {
    fn name(&self) -> &'static str {
        "GatherElements"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for GatherNd {
    fn name(&self) -> &'static str {
        "GatherND"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for ScatterElements {
    fn name(&self) -> &'static str {
        "ScatterElements"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for ScatterNd {
    fn name(&self) -> &'static str {
        "ScatterND"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for TensorScatter {
    fn name(&self) -> &'static str {
        "TensorScatter"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for OneHot {
    fn name(&self) -> &'static str {
        "OneHot"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for NonZero {
    fn name(&self) -> &'static str {
        "NonZero"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Compress {
    fn name(&self) -> &'static str {
        "Compress"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Unique {
    fn name(&self) -> &'static str {
        "Unique"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for NonMaxSuppression {
    fn name(&self) -> &'static str {
        "NonMaxSuppression"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
