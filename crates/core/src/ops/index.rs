//! Operators that read or write by index.

use super::axes::normalize_axis;
use super::rules::{
    INDICES, InputValues, NUMBERS, Types, VALUES, fact, missing_value, unify, unify_shapes,
};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error, value_error};
use crate::fact::Fact;
use crate::graph::{Axes, Flow, InferContext, NodeSpec, NodeView, Operator};

/// Inputs: data, indices (negative counts from the end). Output: indices in place of `axis`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Gather {
    pub axis: i64,
}

/// [`Gather`] with `float32` indices, each truncated towards zero: the Cast before it taken in.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct GatherCast(pub Gather);

/// Inputs: data, indices of the same rank.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct GatherElements {
    pub axis: i64,
}

/// Inputs: data, indices whose last dimension are coordinates.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct GatherNd {
    pub batch_dims: usize,
}

/// What a scatter does where it writes on something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum ScatterReduction {
    #[attribute(absent)]
    None,
    Add,
    Mul,
    Max,
    Min,
}

/// Inputs: data, indices, updates.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ScatterElements {
    pub axis: i64,
    pub reduction: ScatterReduction,
}

/// Inputs: data, indices, updates.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ScatterNd {
    pub reduction: ScatterReduction,
}

/// Inputs: cache, update, optional write indices `[batch]` (opset 24), optional length.
///
/// The length, `int64` or `int32`, is one number, known before the node runs, and no smaller than the cache: the output has so many
/// steps along `axis`, and those that neither cache nor update have are zero. Caches of numbers that are not circular may have one;
/// ONNX has none.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct TensorScatter {
    pub axis: i64,
    pub circular: bool,
}

/// Inputs: indices, depth, values `[off, on]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct OneHot {
    pub axis: i64,
}

/// `Shape` where indices have another rank than the data.
fn same_rank(ctx: &InferContext, i: usize, rank: usize) -> Result<()> {
    ctx.shape_of_rank(i, rank).map(|_| ())
}

impl Operator for Gather {
    fn name(&self) -> &'static str {
        "Gather"
    }

    signature! { (data, indices) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Other)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(1, &INDICES)?;
        self.picked(ctx)
    }

    fn passes_on(&self, node: &NodeView) -> bool {
        let dims = node.input(0).and_then(|x| x.fact.shape.as_ref());
        let axis =
            dims.and_then(|dims| Some(&dims.0[normalize_axis(self.axis, dims.rank()).ok()?]));
        let only =
            axis == Some(&Dim::Known(1)) && matches!(node.ints(1).as_deref(), Some([0 | -1]));
        only && node.keeps_shape()
    }

    fn is_view_for(&self, node: &NodeSpec) -> bool {
        let (Some(x), Some(indices)) = (node.input(0), node.input(1)) else {
            return false;
        };
        let only = normalize_axis(self.axis, x.shape.len()).is_ok_and(|axis| x.shape[axis] == 1);
        let value = indices.value.as_ref().filter(|at| only && at.len() == 1);
        value.is_some_and(|at| at.to_i64s().is_ok_and(|at| matches!(at[..], [0 | -1])))
    }

    fn elements(&self, ctx: &InferContext, elements: &[Option<Vec<Dim>>]) -> Option<Vec<Dim>> {
        let data = elements.first()?.as_ref()?;
        let indices = ctx.ints(1).ok()??;
        let at = |i: i64| {
            let i = if i < 0 { i + data.len() as i64 } else { i };
            data.get(usize::try_from(i).ok()?).cloned()
        };
        indices.into_iter().map(at).collect()
    }
}

impl Gather {
    fn picked(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let axis = normalize_axis(self.axis, x.rank())?;
        let shape = ctx.shape(1)?.map(|indices| {
            let parts = [&x.0[..axis], &indices.0, &x.0[axis + 1..]];
            Shape(parts.concat())
        });
        Ok(vec![fact(dtype, shape)])
    }
}

impl Operator for GatherCast {
    fn name(&self) -> &'static str {
        "GatherCast"
    }

    signature! { (data, indices) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(1, &Types::new("float32", |d| d == DType::F32))?;
        self.0.picked(ctx)
    }
}

impl Operator for GatherElements {
    fn name(&self) -> &'static str {
        "GatherElements"
    }

    signature! { (data, indices) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Other)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        if let Some(x) = ctx.shape(0)? {
            normalize_axis(self.axis, x.rank())?;
            same_rank(ctx, 1, x.rank())?;
        }
        let rank = ctx.shape(0)?.map(Shape::rank);
        let shape = ctx.shape(1)?.cloned().or(rank.map(Shape::unknown));
        Ok(vec![fact(dtype, shape)])
    }
}

/// How many dimensions of the data the last dimension of the indices picks from; `None` where it is
/// not known.
fn picked(x: &Shape, indices: &Shape, batch: usize) -> Result<Option<usize>> {
    let Some(last) = indices.0.last() else {
        return Err(shape_error("the indices must not be a scalar"));
    };
    if batch >= indices.rank().min(x.rank().max(1)) {
        return Err(shape_error("too many batch dimensions")
            .with_expected(format!("fewer than {}", indices.rank().min(x.rank())))
            .with_got(batch));
    }
    match last.known() {
        Some(n) if n > x.rank() - batch => Err(shape_error("an index has too many coordinates")
            .with_expected(format!("at most {}", x.rank() - batch))
            .with_got(n)),
        other => Ok(other),
    }
}

impl Operator for GatherNd {
    fn name(&self) -> &'static str {
        "GatherND"
    }

    signature! { (data, indices) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Other)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        let (Some(x), Some(indices)) = (ctx.shape_of_min_rank(0, 1)?, ctx.shape(1)?) else {
            return Ok(vec![fact(dtype, None)]);
        };
        let batch = self.batch_dims;
        let shape = match picked(x, indices, batch)? {
            Some(n) => {
                let mut dims = indices.0[..indices.rank() - 1].to_vec();
                for (i, dim) in dims.iter_mut().enumerate().take(batch) {
                    *dim = unify(dim, &x.0[i], || "a batch dimension".into())?;
                }
                dims.extend_from_slice(&x.0[batch + n..]);
                Some(Shape(dims))
            }
            None => None,
        };
        Ok(vec![fact(dtype, shape)])
    }
}

impl Operator for ScatterElements {
    fn name(&self) -> &'static str {
        "ScatterElements"
    }

    signature! { (data, indices, updates) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.require(3)?;
        ctx.typed(1, &INDICES)?;
        let dtype = ctx.common_type([0, 2])?;
        if let Some(x) = ctx.shape(0)? {
            normalize_axis(self.axis, x.rank())?;
            same_rank(ctx, 1, x.rank())?;
        }
        if let (Some(indices), Some(updates)) = (ctx.shape(1)?, ctx.shape(2)?) {
            unify_shapes(updates, indices, || "the shape of the updates".into())?;
        }
        Ok(vec![fact(dtype, ctx.shape(0)?.cloned())])
    }

    fn writes_on(&self, output: usize) -> Option<usize> {
        (output == 0).then_some(0)
    }
}

impl Operator for ScatterNd {
    fn name(&self) -> &'static str {
        "ScatterND"
    }

    signature! { (data, indices, updates) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.require(3)?;
        ctx.typed(1, &INDICES)?;
        let dtype = ctx.common_type([0, 2])?;
        let x = ctx.shape_of_min_rank(0, 1)?;
        if let (Some(x), Some(indices)) = (x, ctx.shape(1)?)
            && let Some(n) = picked(x, indices, 0)?
            && let Some(updates) = ctx.shape(2)?
        {
            let dims = [&indices.0[..indices.rank() - 1], &x.0[n..]].concat();
            unify_shapes(updates, &Shape(dims), || "the shape of the updates".into())?;
        }
        Ok(vec![fact(dtype, x.cloned())])
    }

    fn writes_on(&self, output: usize) -> Option<usize> {
        (output == 0).then_some(0)
    }
}

/// The places that a cache of `held` places has where input `i`, which may be left out, says how many there are to be.
///
/// # Errors
/// `InvalidValue` where there are to be fewer, `DataType` where the input is no index.
pub(super) fn longer(held: &Dim, ctx: &InferContext, i: usize) -> Result<Dim> {
    if !ctx.has(i) {
        return Ok(held.clone());
    }
    ctx.typed(i, &INDICES)?;
    let Some(length) = ctx.int(i)? else {
        return Ok(Dim::Unknown);
    };
    let shorter = |length: &usize| held.known().is_some_and(|held| *length < held);
    match usize::try_from(length).ok().filter(|n| !shorter(n)) {
        Some(length) => Ok(Dim::Known(length)),
        None => Err(value_error("a cache is to be shorter than it is")
            .with_expected(format!("at least {held}"))
            .with_got(length)),
    }
}

impl TensorScatter {
    /// The steps of the output along the axis, where the cache has `held` steps.
    fn steps(&self, held: &Dim, ctx: &InferContext) -> Result<Dim> {
        if ctx.has(3) {
            ctx.typed(0, &VALUES)?;
            if self.circular {
                return Err(value_error("a circular cache has no other length"));
            }
        }
        longer(held, ctx, 3)
    }
}

impl Operator for TensorScatter {
    fn name(&self) -> &'static str {
        "TensorScatter"
    }

    signature! { (cache, update, optional write_indices, optional length) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.require(2)?;
        let dtype = ctx.common_type([0, 1])?;
        ctx.typed_optional(2, &INDICES)?;
        let Some(cache) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let axis = normalize_axis(self.axis, cache.rank())?;
        if axis == 0 {
            return Err(shape_error(
                "the batch cannot be the axis of a TensorScatter",
            ));
        }
        let mut output = cache.clone();
        output.0[axis] = self.steps(&cache.0[axis], ctx)?;
        if let Some(update) = ctx.shape(1)? {
            let mut expected = cache.clone();
            if let (Some(whole), Some(part)) = (output.0[axis].known(), update.0.get(axis))
                && part.known().is_some_and(|p| p > whole)
            {
                return Err(shape_error("the update is longer than the cache")
                    .with_expected(format!("at most {whole}"))
                    .with_got(part));
            }
            expected.0[axis] = update.0.get(axis).cloned().unwrap_or(Dim::Unknown);
            unify_shapes(update, &expected, || "the shape of the update".into())?;
        }
        ctx.vector(2, &cache.0[0])?;
        Ok(vec![fact(dtype, Some(output))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[3]
    }

    fn writes_on(&self, output: usize) -> Option<usize> {
        (output == 0).then_some(0)
    }
}

impl OneHot {
    /// The length of the new axis.
    ///
    /// # Errors
    /// `InvalidValue` where it is negative or not known.
    pub fn depth(&self, values: &dyn InputValues) -> Result<usize> {
        let depth = values.value(1).ok_or_else(|| missing_value(1))?.to_f64s()?;
        match depth.as_slice() {
            // The specification allows a depth of any numeric type.
            [d] if (0.0..=i32::MAX.into()).contains(d) => Ok(*d as usize),
            other => Err(value_error("a depth must be one number")
                .with_expected("0 or more")
                .with_got(format!("{other:?}"))),
        }
    }
}

impl Operator for OneHot {
    fn name(&self) -> &'static str {
        "OneHot"
    }

    signature! { (indices, depth, values) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NUMBERS)?;
        ctx.typed(1, &NUMBERS)?;
        ctx.scalar(1)?;
        let dtype = ctx.dtype(2)?;
        ctx.vector(2, &Dim::Known(2))?;
        let depth = match ctx.value(1) {
            Some(_) => Dim::Known(self.depth(ctx)?),
            None => Dim::Unknown,
        };
        let shape = match ctx.shape(0)? {
            Some(x) => {
                let axis = normalize_axis(self.axis, x.rank() + 1)?;
                let mut shape = x.clone();
                shape.0.insert(axis, depth);
                Some(shape)
            }
            None => None,
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}
