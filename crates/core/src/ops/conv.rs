//! Convolutions. Data is `[n, c, spatial..]`, or `[n, spatial.., c]` with `channels_last`; weights
//! are `[m, c / groups, kernel..]` in either case (`[c, m / groups, kernel..]` when transposed).

use super::*;

/// How the padding of a sliding window is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Begin of each spatial axis, then end of each.
    Explicit(Vec<usize>),
    /// Output is `ceil(input / stride)`, the odd element at the end.
    SameUpper,
    /// As above, the odd element at the beginning.
    SameLower,
    Valid,
}

/// Inputs: data, weights, optional bias `[m]`, optional residual of the output's shape that is
/// added before the activation.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub padding: Padding,
    pub groups: usize,
    pub channels_last: bool,
    pub activation: Activation,
}

/// Inputs: data, weights, optional bias `[m]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvTranspose {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub padding: Padding,
    pub output_padding: Vec<usize>,
    /// Asked-for spatial output shape; the padding follows from it.
    pub output_shape: Option<Vec<usize>>,
    pub groups: usize,
    pub channels_last: bool,
    pub activation: Activation,
}

/// Inputs: `[n, c * block, blocks]`, image shape, block shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Col2Im {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub pads: Vec<usize>,
}

/// Inputs: data, weights, offsets, optional bias, optional mask; NCHW.
#[derive(Clone, Debug, PartialEq)]
pub struct DeformConv {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub pads: Vec<usize>,
    pub groups: usize,
    pub offset_groups: usize,
}

impl Operator for Conv {
    fn name(&self) -> &'static str {
        "Conv"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for ConvTranspose {
    fn name(&self) -> &'static str {
        "ConvTranspose"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Col2Im {
    fn name(&self) -> &'static str {
        "Col2Im"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for DeformConv {
    fn name(&self) -> &'static str {
        "DeformConv"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
