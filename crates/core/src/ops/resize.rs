//! Sampling at other positions.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoordinateMode {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfCropAndResize,
    /// TFLite's nearest with `half_pixel_centers`.
    TfHalfPixelForNearest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NearestMode {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResizeMode {
    Nearest(NearestMode),
    Linear,
    Cubic { a: f32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AspectPolicy {
    Stretch,
    NotLarger,
    NotSmaller,
}

/// Inputs: x, optional roi, optional scales, optional sizes. Any axis may be resized, so the layout
/// does not matter; `axes` says which ones scales and sizes are about.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    pub mode: ResizeMode,
    pub coordinates: CoordinateMode,
    pub antialias: bool,
    pub exclude_outside: bool,
    pub extrapolation: f32,
    pub axes: Option<Vec<i64>>,
    pub policy: AspectPolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GridPadding {
    Zeros,
    Border,
    Reflection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GridMode {
    Linear,
    Nearest,
    Cubic,
}

/// Inputs: x `[n, c, spatial..]`, grid `[n, out.., rank]` in -1..1.
#[derive(Clone, Debug, PartialEq)]
pub struct GridSample {
    pub mode: GridMode,
    pub padding: GridPadding,
    pub align_corners: bool,
}

/// Inputs: theta `[n, 2, 3]` or `[n, 3, 4]`, output size.
#[derive(Clone, Debug, PartialEq)]
pub struct AffineGrid {
    pub align_corners: bool,
}

impl Operator for Resize {
    fn name(&self) -> &'static str {
        "Resize"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for GridSample {
    fn name(&self) -> &'static str {
        "GridSample"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for AffineGrid {
    fn name(&self) -> &'static str {
        "AffineGrid"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
