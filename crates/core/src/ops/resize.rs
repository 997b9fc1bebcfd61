//! Sampling at other positions.

use super::axes::normalize_axes;
use super::renumber;
use super::rules::{
    FLOATS, INDICES, InputValues, fact, missing_value, sizes, unify, unify_shapes, wrong_count,
};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error, value_error};
use crate::fact::Fact;
use crate::graph::{Axes, Flow, InferContext, Operator, Renumbered};

/// Which place in the input an element of the output stands for: ONNX's `coordinate_transformation_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
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

/// Which of two neighbours is the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum NearestMode {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
}

/// What is made of the elements around a place.
#[derive(Clone, Copy, Debug, PartialEq, Reflect)]
pub enum ResizeMode {
    Nearest(NearestMode),
    Linear,
    Cubic { a: f32 },
}

/// Whether asked-for sizes are bounds within which proportions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum AspectPolicy {
    Stretch,
    NotLarger,
    NotSmaller,
}

/// Inputs: x, optional roi, optional scales, optional sizes. Any axis may be resized, so the layout
/// does not matter; `axes` says which ones scales and sizes are about.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Resize {
    pub mode: ResizeMode,
    pub coordinates: CoordinateMode,
    pub antialias: bool,
    pub exclude_outside: bool,
    pub extrapolation: f32,
    pub axes: Option<Vec<i64>>,
    pub policy: AspectPolicy,
}

/// What is read outside of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum GridPadding {
    Zeros,
    Border,
    Reflection,
}

/// What is made of the elements around a place of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum GridMode {
    Linear,
    Nearest,
    Cubic,
}

/// Inputs: x `[n, c, spatial..]`, grid `[n, out.., rank]` in -1..1.
///
/// Where the text of the standard is silent, this is what PyTorch and onnxruntime compute: `Cubic` with `Border`
/// clips each of the four neighbours of a point, not the point; `Nearest` rounds before it pads. A coordinate that is
/// NaN counts as -1, as PyTorch documents, and lies outside with `Zeros`. An infinite one is mirrored to the first element.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct GridSample {
    pub mode: GridMode,
    pub padding: GridPadding,
    pub align_corners: bool,
}

/// Inputs: theta `[n, 2, 3]` or `[n, 3, 4]`, output size.
///
/// With `align_corners` the only point of an axis of length 1 is its centre, 0, as in PyTorch.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct AffineGrid {
    pub align_corners: bool,
}

/// What [`Resize`] does along one axis of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResizeAxis {
    pub input: usize,
    pub output: usize,
    /// Output over input; 1 where the axis is not resized.
    pub scale: f64,
    /// The part of the axis that is sampled, 0 to 1 but for [`CoordinateMode::TfCropAndResize`].
    pub roi: (f64, f64),
}

/// What the inputs ask of one axis.
#[derive(Clone, Copy)]
enum Target {
    Scale(f32),
    Size(usize),
}

impl Resize {
    /// What happens along each axis of the data, those that are not resized too.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where scales, sizes, region and axes do not fit the data or are not
    /// known.
    pub fn resolve(&self, shape: &[usize], values: &dyn InputValues) -> Result<Vec<ResizeAxis>> {
        let rank = shape.len();
        let (axes, targets) = (self.axes(rank)?, self.targets(rank, values)?);
        let regions = self.regions(rank, values)?;
        let common = self.common_scale(shape, &axes, &targets)?;
        let mut resolved = Vec::with_capacity(rank);
        for (axis, &input) in shape.iter().enumerate() {
            let mut one = ResizeAxis {
                input,
                output: input,
                scale: 1.0,
                roi: regions[axis],
            };
            if let Some(k) = axes.iter().position(|&a| a == axis) {
                match (targets[k], common) {
                    (Target::Scale(scale), _) => {
                        one.output = scaled(input, scale, regions[axis])?;
                        one.scale = scale.into();
                    }
                    (Target::Size(_), Some(scale)) => {
                        one.output = rounded(input, scale)?;
                        one.scale = scale;
                    }
                    (Target::Size(size), None) => {
                        one.output = size;
                        one.scale = ratio(size, input);
                    }
                }
            }
            if one.input == 0 && one.output > 0 {
                return Err(shape_error("an axis without elements cannot be resized"));
            }
            resolved.push(one);
        }
        self.keep_still(&mut resolved);
        Ok(resolved)
    }

    /// PyTorch and onnxruntime copy what keeps its shape, whatever the scales say; with a filter against aliases also
    /// along a single axis.
    fn keep_still(&self, axes: &mut [ResizeAxis]) {
        let still = |a: &ResizeAxis| a.input == a.output && a.roi == (0.0, 1.0);
        let every = axes.iter().all(still);
        for axis in axes.iter_mut().filter(|a| still(a)) {
            if every || self.antialias {
                axis.scale = 1.0;
            }
        }
    }

    fn axes(&self, rank: usize) -> Result<Vec<usize>> {
        match &self.axes {
            Some(axes) => normalize_axes(axes, rank),
            None => Ok((0..rank).collect()),
        }
    }

    /// Scales, or sizes, of the axes that are resized. An empty tensor counts as left out.
    fn targets(&self, rank: usize, values: &dyn InputValues) -> Result<Vec<Target>> {
        let targets: Vec<Target> = match (values.value(2), values.value(3)) {
            (_, Some(t)) if !t.is_empty() => sizes(&t.to_i64s()?, "a size")?
                .into_iter()
                .map(Target::Size)
                .collect(),
            (Some(t), _) if !t.is_empty() => {
                let scales = t.to_f64s()?;
                if let Some(bad) = scales.iter().find(|&&s| !(s > 0.0 && s.is_finite())) {
                    return Err(value_error("a scale must be positive").with_got(bad));
                }
                scales.iter().map(|&s| Target::Scale(s as f32)).collect()
            }
            _ => return Err(value_error("Resize needs either scales or sizes")),
        };
        let count = self.axes(rank)?.len();
        if targets.len() != count {
            return Err(wrong_count("scales or sizes", count, targets.len()));
        }
        Ok(targets)
    }

    fn regions(&self, rank: usize, values: &dyn InputValues) -> Result<Vec<(f64, f64)>> {
        let mut regions = vec![(0.0, 1.0); rank];
        if self.coordinates != CoordinateMode::TfCropAndResize {
            return Ok(regions);
        }
        let roi = values.value(1).ok_or_else(|| missing_value(1))?.to_f64s()?;
        let axes = self.axes(rank)?;
        if roi.len() != 2 * axes.len() {
            return Err(wrong_count("the region", 2 * axes.len(), roi.len()));
        }
        for (k, &axis) in axes.iter().enumerate() {
            regions[axis] = (roi[k], roi[axes.len() + k]);
        }
        Ok(regions)
    }

    /// The scale of all axes under a policy that keeps the aspect ratio.
    fn common_scale(
        &self,
        shape: &[usize],
        axes: &[usize],
        targets: &[Target],
    ) -> Result<Option<f64>> {
        let scales = axes.iter().zip(targets).filter_map(|(&axis, t)| match t {
            Target::Size(size) => Some(ratio(*size, shape[axis])),
            Target::Scale(_) => None,
        });
        Ok(match self.policy {
            AspectPolicy::Stretch => None,
            AspectPolicy::NotLarger => scales.reduce(f64::min),
            AspectPolicy::NotSmaller => scales.reduce(f64::max),
        })
    }

    /// One dimension under a target that does not depend on the others.
    fn dim(&self, dim: &Dim, target: Target, roi: (f64, f64)) -> Result<Dim> {
        Ok(match (target, dim) {
            (Target::Size(n), _) if self.policy == AspectPolicy::Stretch => Dim::Known(n),
            (Target::Scale(s), Dim::Known(n)) => Dim::Known(scaled(*n, s, roi)?),
            (Target::Scale(s), d) if s == 1.0 && roi == (0.0, 1.0) => d.clone(),
            _ => Dim::Unknown,
        })
    }
}

pub(super) fn ratio(output: usize, input: usize) -> f64 {
    output as f64 / input.max(1) as f64
}

/// `floor(input * scale)`, in single precision as the specification's reference does it.
fn scaled(input: usize, scale: f32, roi: (f64, f64)) -> Result<usize> {
    let span = (roi.1 - roi.0) as f32;
    whole(f64::from((input as f32 * span * scale).floor()))
}

/// `round(input * scale)`, halves up.
fn rounded(input: usize, scale: f64) -> Result<usize> {
    whole((input as f64 * scale + 0.5).floor())
}

fn whole(size: f64) -> Result<usize> {
    if (0.0..=i32::MAX.into()).contains(&size) {
        Ok(size as usize)
    } else {
        Err(value_error("a resized dimension is out of range").with_got(size))
    }
}

impl Operator for Resize {
    fn name(&self) -> &'static str {
        "Resize"
    }

    signature! { (data, optional roi, optional scales, optional sizes) -> (output) }

    fn flow(&self) -> Flow {
        Flow::computed(Axes::Kept)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed_optional(1, &FLOATS)?;
        ctx.typed_optional(2, &FLOATS)?;
        ctx.typed_optional(3, &INDICES)?;
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let axes = self.axes(x.rank())?;
        let mut shape = x.clone();
        if !ctx.known(self.value_inputs()) {
            for axis in axes {
                shape.0[axis] = Dim::Unknown;
            }
        } else if let Some(dims) = x.concrete() {
            let resolved = self.resolve(&dims, ctx)?;
            shape = Shape(resolved.iter().map(|a| Dim::Known(a.output)).collect());
        } else {
            let targets = self.targets(x.rank(), ctx)?;
            let regions = self.regions(x.rank(), ctx)?;
            for (&axis, target) in axes.iter().zip(targets) {
                shape.0[axis] = self.dim(&x.0[axis], target, regions[axis])?;
            }
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1, 2, 3]
    }

    fn renumbered(&self, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        renumber::resize(self, ctx, perm)
    }
}

impl Operator for GridSample {
    fn name(&self) -> &'static str {
        "GridSample"
    }

    signature! { (data, grid) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &FLOATS)?;
        let (x, grid) = (ctx.shape_of_min_rank(0, 3)?, ctx.shape(1)?);
        let (Some(x), Some(grid)) = (x, grid) else {
            let rank = x.or(grid).map(Shape::rank);
            return Ok(vec![fact(dtype, rank.map(Shape::unknown))]);
        };
        if grid.rank() != x.rank() {
            return Err(shape_error("data and grid differ in rank")
                .with_expected(format!("rank {}", x.rank()))
                .with_got(grid));
        }
        let (batch, spatial) = (&grid.0[0], &grid.0[1..grid.rank() - 1]);
        let coordinates = Dim::Known(x.rank() - 2);
        let last = &grid.0[grid.rank() - 1];
        unify(last, &coordinates, || "the coordinates of the grid".into())?;
        let batch = unify(batch, &x.0[0], || "the batch of the grid".into())?;
        let mut dims = vec![batch, x.0[1].clone()];
        dims.extend_from_slice(spatial);
        Ok(vec![fact(dtype, Some(Shape(dims)))])
    }
}

impl AffineGrid {
    /// The size of the sampled tensor: batch, channels, spatial dimensions.
    ///
    /// # Errors
    /// `Shape` where there are not two or three spatial dimensions, `InvalidValue` where one is
    /// negative or the size is not known.
    pub fn size(&self, values: &dyn InputValues) -> Result<Vec<usize>> {
        let size = sizes(&values.need_ints(1)?, "a size")?;
        match size.len() {
            4 | 5 => Ok(size),
            n => Err(shape_error("the size of a grid has the wrong length")
                .with_expected("4 or 5")
                .with_got(n)),
        }
    }
}

impl Operator for AffineGrid {
    fn name(&self) -> &'static str {
        "AffineGrid"
    }

    signature! { (theta, size) -> (grid) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, &FLOATS)?;
        ctx.typed(1, &INDICES)?;
        let theta = ctx.shape_of_rank(0, 3)?;
        if ctx.value(1).is_none() {
            let length = ctx.length(1)?;
            let rank = length.filter(|n| (4..=5).contains(n));
            return Ok(vec![fact(dtype, rank.map(Shape::unknown))]);
        }
        let size = self.size(ctx)?;
        let spatial = &size[2..];
        let n = spatial.len();
        if let Some(theta) = theta {
            let expected = Shape::fixed(&[size[0], n, n + 1]);
            unify_shapes(theta, &expected, || "the transformation".into())?;
        }
        let dims = [&size[..1], spatial, &[n]].concat();
        Ok(vec![fact(dtype, Some(Shape::fixed(&dims)))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}
