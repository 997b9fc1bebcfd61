//! Sliding-window pooling and pooling of regions. Layout as in [`super::conv`].

use super::*;

/// What all pooling windows have.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub kernel: Vec<usize>,
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub padding: Padding,
    pub ceil_mode: bool,
}

/// Outputs: maxima, optional flat indices (`int64`, of the whole tensor).
#[derive(Clone, Debug, PartialEq)]
pub struct MaxPool {
    pub window: Window,
    /// Indices count columns first.
    pub column_major: bool,
    pub channels_last: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AveragePool {
    pub window: Window,
    /// Padding counts in the divisor.
    pub count_include_pad: bool,
    pub channels_last: bool,
    pub activation: Activation,
}

/// `(sum |x|^p)^(1/p)`.
#[derive(Clone, Debug, PartialEq)]
pub struct LpPool {
    pub window: Window,
    pub p: u32,
    pub channels_last: bool,
}

/// Inputs: maxima, flat indices, optional output shape; NCHW.
#[derive(Clone, Debug, PartialEq)]
pub struct MaxUnpool {
    pub window: Window,
}

/// Inputs: data NCHW, regions `[n, 5]` (batch, x1, y1, x2, y2).
#[derive(Clone, Debug, PartialEq)]
pub struct MaxRoiPool {
    pub pooled: [usize; 2],
    pub spatial_scale: f32,
}

/// Inputs: data NCHW, regions `[n, 4]`, batch indices `[n]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RoiAlign {
    pub output: [usize; 2],
    pub sampling_ratio: usize,
    pub spatial_scale: f32,
    pub max: bool,
    /// Shifts by half a pixel (`coordinate_transformation_mode = half_pixel`).
    pub half_pixel: bool,
}

impl Operator for MaxPool {
    fn name(&self) -> &'static str {
        "MaxPool"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for AveragePool {
    fn name(&self) -> &'static str {
        "AveragePool"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for LpPool {
    fn name(&self) -> &'static str {
        "LpPool"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for MaxUnpool {
    fn name(&self) -> &'static str {
        "MaxUnpool"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for MaxRoiPool {
    fn name(&self) -> &'static str {
        "MaxRoiPool"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for RoiAlign {
    fn name(&self) -> &'static str {
        "RoiAlign"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
