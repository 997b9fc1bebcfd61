//! Normalisations.

use super::axes::{normalize_axes, normalize_axis};
use super::renumber;
use super::rules::{FLOATS, broadcasts_to, fact, same_as_first, some_of};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error, value_error};
use crate::fact::Fact;
use crate::graph::{Axes, Flow, InferContext, NodeView, Operator, Renumbered, Spatial};

/// Inference: inputs x, scale, bias, mean, variance (each `[c]`).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct BatchNorm {
    pub epsilon: f32,
    pub channels_last: bool,
}

/// Inputs: x, scale, optional bias. Outputs: y, optional mean, optional inverse deviation.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct LayerNorm {
    pub axis: i64,
    pub epsilon: f32,
}

/// Inputs: x, scale.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct RmsNorm {
    pub axis: i64,
    pub epsilon: f32,
}

/// Inputs: x `[n, c, ..]`, scale `[c]`, bias `[c]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct InstanceNorm {
    pub epsilon: f32,
}

/// Inputs: x `[n, c, ..]`, scale `[c]`, bias `[c]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct GroupNorm {
    pub groups: usize,
    pub epsilon: f32,
}

/// Divides by the p-norm along `axis`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct LpNorm {
    pub axis: i64,
    pub p: u32,
}

/// Local response normalisation across channels, NCHW.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Lrn {
    pub alpha: f32,
    pub beta: f32,
    pub bias: f32,
    pub size: usize,
    pub channels_last: bool,
}

/// `(x - mean) / deviation` over `axes`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct MeanVarianceNorm {
    pub axes: Vec<i64>,
}

/// Checks data of at least `rank` dimensions whose channels have the parameters `from..to`.
fn per_channel(
    ctx: &InferContext,
    rank: usize,
    channels_last: bool,
    parameters: std::ops::Range<usize>,
) -> Result<Fact> {
    ctx.typed(0, &FLOATS)?;
    for i in parameters.clone() {
        ctx.typed(i, &FLOATS)?;
    }
    if let Some(x) = ctx.shape_of_min_rank(0, rank)? {
        let channel = if channels_last { x.rank() - 1 } else { 1 };
        let channels = x.0.get(channel).cloned().unwrap_or(Dim::Known(1));
        for i in parameters {
            ctx.vector(i, &channels)?;
        }
    }
    Ok(ctx.fact(0)?.clone())
}

impl Operator for BatchNorm {
    fn name(&self) -> &'static str {
        "BatchNormalization"
    }

    signature! { (data, scale, bias, mean, variance) -> (output) }

    fn flow(&self) -> Flow {
        Flow::computed(Axes::Kept)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        Ok(vec![per_channel(ctx, 1, self.channels_last, 1..5)?])
    }

    fn renumbered(&self, _: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let last = perm.len().checked_sub(1)?;
        let channels = match self.channels_last {
            true => perm[last],
            false => *perm.get(1)?,
        };
        let op = BatchNorm {
            channels_last: channels != 1,
            ..self.clone()
        };
        (channels == 1 || channels == last).then(|| Renumbered::new(op, perm))
    }
}

/// The inference of normalisations over the dimensions from `axis` on, with the inputs `parameters`: the data's shape,
/// and that of the statistics.
fn from_axis(
    ctx: &InferContext,
    axis: i64,
    parameters: std::ops::Range<usize>,
) -> Result<(Option<Shape>, Option<Shape>)> {
    let Some(x) = ctx.shape(0)? else {
        return Ok((None, None));
    };
    let axis = normalize_axis(axis, x.rank())?;
    for i in parameters {
        if let Some(parameter) = ctx.shape_optional(i) {
            broadcasts_to(parameter, x, "a parameter of the normalisation")?;
        }
    }
    let mut statistics = x.clone();
    statistics.0[axis..].fill(Dim::Known(1));
    Ok((Some(x.clone()), Some(statistics)))
}

/// What [`Operator::apart`] says of a normalisation from `first` on.
fn apart_before(first: i64, node: &NodeView, axis: usize) -> Option<Vec<usize>> {
    let first = normalize_axis(first, node.rank(0)?).ok()?;
    (axis < first).then(|| vec![0])
}

/// Whether `axis` is the last one, also for the data whose transpose by `perm` this is.
fn last_stays_last(axis: i64, perm: &[usize]) -> bool {
    let last = perm.len().checked_sub(1);
    last.is_some() && normalize_axis(axis, perm.len()).ok() == last && perm.last().copied() == last
}

impl Operator for LayerNorm {
    fn name(&self) -> &'static str {
        "LayerNormalization"
    }

    signature! {
        (
            data, scale, optional bias
        ) -> (output, optional mean, optional inverse_deviation)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        ctx.require(2)?;
        let dtype = ctx.common_type(0..3)?;
        let (shape, statistics) = from_axis(ctx, self.axis, 1..3)?;
        // Those of narrower types are computed in single precision.
        let computed = dtype.map(|d| if d == DType::F64 { d } else { DType::F32 });
        let statistics = fact(computed, statistics);
        let y = fact(dtype, shape);
        Ok(some_of(ctx, [y, statistics.clone(), statistics]))
    }

    fn apart(&self, node: &NodeView, axis: usize) -> Option<Vec<usize>> {
        apart_before(self.axis, node, axis)
    }

    fn renumbered(&self, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let alike = ctx.outputs == 1 && last_stays_last(self.axis, perm);
        alike.then(|| Renumbered::new(self.clone(), perm))
    }

    fn has_optional_outputs(&self) -> bool {
        true
    }
}

impl Operator for RmsNorm {
    fn name(&self) -> &'static str {
        "RMSNormalization"
    }

    signature! { (data, scale) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        let dtype = ctx.typed(1, &FLOATS)?;
        let (shape, _) = from_axis(ctx, self.axis, 1..2)?;
        Ok(vec![fact(dtype, shape)])
    }

    fn apart(&self, node: &NodeView, axis: usize) -> Option<Vec<usize>> {
        apart_before(self.axis, node, axis)
    }

    fn renumbered(&self, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let alike = ctx.outputs == 1 && last_stays_last(self.axis, perm);
        alike.then(|| Renumbered::new(self.clone(), perm))
    }
}

impl Operator for InstanceNorm {
    fn name(&self) -> &'static str {
        "InstanceNormalization"
    }

    signature! { (data, scale, bias) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.common_type(0..3)?;
        Ok(vec![per_channel(ctx, 3, false, 1..3)?])
    }
}

impl Operator for GroupNorm {
    fn name(&self) -> &'static str {
        "GroupNormalization"
    }

    signature! { (data, scale, bias) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.common_type(0..3)?;
        let y = per_channel(ctx, 2, false, 1..3)?;
        let channels = ctx.shape(0)?.and_then(|x| x.0[1].known());
        match channels {
            _ if self.groups == 0 => Err(value_error("the number of groups must not be 0")),
            Some(c) if !c.is_multiple_of(self.groups) => {
                Err(shape_error("the channels do not divide into the groups")
                    .with_expected(format!("a multiple of {}", self.groups))
                    .with_got(c))
            }
            _ => Ok(vec![y]),
        }
    }
}

impl Operator for LpNorm {
    fn name(&self) -> &'static str {
        "LpNormalization"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::computed(Axes::Kept)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        if let Some(x) = ctx.shape(0)? {
            normalize_axis(self.axis, x.rank())?;
        }
        same_as_first(ctx)
    }

    fn renumbered(&self, _: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let axis = renumber::axis(self.axis, perm)?;
        Some(Renumbered::new(
            LpNorm {
                axis,
                ..self.clone()
            },
            perm,
        ))
    }
}

impl Operator for Lrn {
    fn name(&self) -> &'static str {
        "LRN"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        ctx.shape_of_min_rank(0, 2)?;
        if self.size == 0 {
            return Err(value_error("the size of LRN must not be 0"));
        }
        same_as_first(ctx)
    }

    fn spatial(&self) -> Option<Spatial> {
        let turned = || Lrn {
            channels_last: true,
            ..self.clone()
        };
        let turned = (!self.channels_last).then(turned);
        Some(Spatial::new(turned, false))
    }
}

impl Operator for MeanVarianceNorm {
    fn name(&self) -> &'static str {
        "MeanVarianceNormalization"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        if let Some(x) = ctx.shape(0)? {
            normalize_axes(&self.axes, x.rank())?;
        }
        same_as_first(ctx)
    }
}
