//! Operators that move elements without changing them.

use super::*;

/// Inputs: data, shape. `0` copies a dimension unless `allow_zero`; one `-1` is computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    pub allow_zero: bool,
}

/// Inputs: data, optional axes. Without axes every dimension of 1 goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Squeeze;

/// Inputs: data, axes (of the output).
#[derive(Clone, Debug, PartialEq)]
pub struct Unsqueeze;

/// To two dimensions, split before `axis` (which may be the rank).
#[derive(Clone, Debug, PartialEq)]
pub struct Flatten {
    pub axis: i64,
}

/// Output dimension `i` is input dimension `perm[i]`; an empty `perm` reverses.
#[derive(Clone, Debug, PartialEq)]
pub struct Transpose {
    pub perm: Vec<usize>,
}

/// Any number of inputs along `axis`.
#[derive(Clone, Debug, PartialEq)]
pub struct Concat {
    pub axis: i64,
}

/// Inputs: data, optional sizes. Without sizes, equal parts (the last smaller).
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    pub axis: i64,
}

/// Inputs: data, starts, ends, optional axes, optional steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice;

/// How [`Pad`] fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PadMode {
    Constant,
    Reflect,
    Edge,
    Wrap,
    /// Reflects the border element too (TFLite's MIRROR_PAD SYMMETRIC).
    Symmetric,
}

/// Inputs: data, pads (begin of each axis, then end; negative crops), optional value, optional axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    pub mode: PadMode,
}

/// Inputs: data, repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile;

/// Inputs: data, shape; broadcast both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Expand;

/// Blocks of the channel dimension become space. NCHW, or NHWC with `channels_last`.
#[derive(Clone, Debug, PartialEq)]
pub struct DepthToSpace {
    pub block: usize,
    /// Column-row-depth order; false is depth-column-row.
    pub crd: bool,
    pub channels_last: bool,
}

/// The inverse of [`DepthToSpace`] in depth-column-row order.
#[derive(Clone, Debug, PartialEq)]
pub struct SpaceToDepth {
    pub block: usize,
    pub channels_last: bool,
}

/// TFLite's SPACE_TO_BATCH_ND on NHWC-like data; inputs: data, block shape `[m]`, paddings `[m, 2]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SpaceToBatch;

/// TFLite's BATCH_TO_SPACE_ND; inputs: data, block shape `[m]`, crops `[m, 2]`.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchToSpace;

/// Keeps one triangle of the last two dimensions. Inputs: data, optional diagonal `k`.
#[derive(Clone, Debug, PartialEq)]
pub struct Trilu {
    pub upper: bool,
}

/// Reverses the first `lens[b]` elements along `time_axis`. Inputs: data, lens.
#[derive(Clone, Debug, PartialEq)]
pub struct ReverseSequence {
    pub batch_axis: usize,
    pub time_axis: usize,
}

/// Crops or pads around the centre. Inputs: data, shape of `axes` (all axes if `None`).
#[derive(Clone, Debug, PartialEq)]
pub struct CenterCropPad {
    pub axes: Option<Vec<i64>>,
}

impl Operator for Reshape {
    fn name(&self) -> &'static str {
        "Reshape"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Squeeze {
    fn name(&self) -> &'static str {
        "Squeeze"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Unsqueeze {
    fn name(&self) -> &'static str {
        "Unsqueeze"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Flatten {
    fn name(&self) -> &'static str {
        "Flatten"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Transpose {
    fn name(&self) -> &'static str {
        "Transpose"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Concat {
    fn name(&self) -> &'static str {
        "Concat"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Split {
    fn name(&self) -> &'static str {
        "Split"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Slice {
    fn name(&self) -> &'static str {
        "Slice"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Pad {
    fn name(&self) -> &'static str {
        "Pad"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Tile {
    fn name(&self) -> &'static str {
        "Tile"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Expand {
    fn name(&self) -> &'static str {
        "Expand"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for DepthToSpace {
    fn name(&self) -> &'static str {
        "DepthToSpace"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for SpaceToDepth {
    fn name(&self) -> &'static str {
        "SpaceToDepth"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for SpaceToBatch {
    fn name(&self) -> &'static str {
        "SpaceToBatchND"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for BatchToSpace {
    fn name(&self) -> &'static str {
        "BatchToSpaceND"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Trilu {
    fn name(&self) -> &'static str {
        "Trilu"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for ReverseSequence {
    fn name(&self) -> &'static str {
        "ReverseSequence"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for CenterCropPad {
    fn name(&self) -> &'static str {
        "CenterCropPad"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
