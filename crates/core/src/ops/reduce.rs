//! Reductions over axes, arg reductions, running sums and softmax.

use super::axes::{normalize_axes, normalize_axis};
use super::renumber;
use super::rules::{FLOATS, INDICES, InputValues, NUMBERS, VALUES, fact, missing_value};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Axes, Flow, InferContext, NodeView, Operator, Renumbered};

/// The function of [`Reduce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum ReduceKind {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
}

/// Inputs: data, optional axes. Without axes all, or none with `noop_with_empty_axes`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Reduce {
    pub kind: ReduceKind,
    pub keep_dims: bool,
    pub noop_with_empty_axes: bool,
}

/// The index of the largest or smallest element, `int64`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ArgReduce {
    pub max: bool,
    pub axis: i64,
    pub keep_dims: bool,
    /// Whether the last of equal elements counts, not the first.
    pub select_last: bool,
    /// `int64` unless a format says otherwise.
    pub output: DType,
}

/// Inputs: data, axis (scalar).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Cumulative {
    /// Product instead of sum.
    pub product: bool,
    pub exclusive: bool,
    pub reverse: bool,
}

/// The function of [`Softmax`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum SoftmaxKind {
    Softmax,
    LogSoftmax,
    /// One at the first maximum, zero elsewhere.
    Hardmax,
}

/// Input: x, floating point; the output has its shape. What `kind` says of the numbers along `axis`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Softmax {
    pub kind: SoftmaxKind,
    pub axis: i64,
    /// Multiplies the input (TFLite's beta).
    pub beta: f32,
}

impl Operator for Reduce {
    fn name(&self) -> &'static str {
        match self.kind {
            ReduceKind::Sum => "ReduceSum",
            ReduceKind::Mean => "ReduceMean",
            ReduceKind::Max => "ReduceMax",
            ReduceKind::Min => "ReduceMin",
            ReduceKind::Prod => "ReduceProd",
            ReduceKind::L1 => "ReduceL1",
            ReduceKind::L2 => "ReduceL2",
            ReduceKind::LogSum => "ReduceLogSum",
            ReduceKind::LogSumExp => "ReduceLogSumExp",
            ReduceKind::SumSquare => "ReduceSumSquare",
        }
    }

    signature! { (data, optional axes) -> (output) }

    fn flow(&self) -> Flow {
        match self.keep_dims {
            true => Flow::computed(Axes::Kept),
            false => Flow::computed(Axes::Removed),
        }
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let orders = matches!(self.kind, ReduceKind::Max | ReduceKind::Min);
        let dtype = ctx.typed(0, if orders { &VALUES } else { &NUMBERS })?;
        ctx.typed_optional(1, &INDICES)?;
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let shape = if ctx.known(self.value_inputs()) {
            Some(without(x, &self.axes(x.rank(), ctx)?, self.keep_dims))
        } else if self.keep_dims {
            Some(Shape::unknown(x.rank()))
        } else {
            match ctx.length(1)? {
                Some(0) | None => None,
                Some(n) => x.rank().checked_sub(n).map(Shape::unknown),
            }
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let base = Cost::elementwise(inputs, outputs);
        let read = inputs.first().and_then(Option::as_ref);
        let flops = read.map_or(base.flops, |x| x.iter().map(|&d| d as f64).product());
        Cost { flops, ..base }
    }

    fn renumbered(&self, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let (axes, perm) = match self.axes(perm.len(), ctx).ok()?[..] {
            [] => return None,
            ref axes => renumber::reduced(axes, perm, self.keep_dims),
        };
        Renumbered::new(self.clone(), &perm).with_ints(1, &axes)
    }
}

impl Reduce {
    /// The axes that are reduced, in order.
    ///
    /// # Errors
    /// `Shape` where an axis is out of range or named twice, `InvalidValue` where the axes are given
    /// but not known.
    pub fn axes(&self, rank: usize, values: &dyn InputValues) -> Result<Vec<usize>> {
        let given = if values.has(1) {
            values.need_ints(1)?
        } else {
            Vec::new()
        };
        if given.is_empty() {
            let none = self.noop_with_empty_axes;
            return Ok(if none {
                Vec::new()
            } else {
                (0..rank).collect()
            });
        }
        let mut axes = normalize_axes(&given, rank)?;
        axes.sort_unstable();
        Ok(axes)
    }
}

/// `shape` with `axes` reduced to 1, or dropped.
fn without(shape: &Shape, axes: &[usize], keep_dims: bool) -> Shape {
    let dims = shape.0.iter().enumerate();
    let reduced = dims.filter_map(|(i, d)| match (axes.contains(&i), keep_dims) {
        (false, _) => Some(d.clone()),
        (true, true) => Some(Dim::Known(1)),
        (true, false) => None,
    });
    Shape(reduced.collect())
}

impl Operator for ArgReduce {
    fn name(&self) -> &'static str {
        if self.max { "ArgMax" } else { "ArgMin" }
    }

    signature! { (data) -> (indices) }

    fn flow(&self) -> Flow {
        match self.keep_dims {
            true => Flow::computed(Axes::Kept),
            false => Flow::computed(Axes::Removed),
        }
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NUMBERS)?;
        INDICES.check(0, Some(self.output))?;
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(Some(self.output), None)]);
        };
        let axis = normalize_axis(self.axis, x.rank())?;
        if x.0[axis] == Dim::Known(0) {
            return Err(shape_error("an axis without elements has no extreme").with_got(x));
        }
        let shape = without(x, &[axis], self.keep_dims);
        Ok(vec![fact(Some(self.output), Some(shape))])
    }

    fn renumbered(&self, _: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let axis = normalize_axis(self.axis, perm.len()).ok()?;
        let (axes, perm) = renumber::reduced(&[axis], perm, self.keep_dims);
        let axis = *axes.first()?;
        Some(Renumbered::new(
            ArgReduce {
                axis,
                ..self.clone()
            },
            &perm,
        ))
    }
}

impl Operator for Cumulative {
    fn name(&self) -> &'static str {
        if self.product { "CumProd" } else { "CumSum" }
    }

    signature! { (data, axis) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, &NUMBERS)?;
        ctx.typed(1, &INDICES)?;
        ctx.scalar(1)?;
        let x = ctx.shape(0)?;
        if let Some(x) = x
            && ctx.value(1).is_some()
        {
            self.axis(x.rank(), ctx)?;
        }
        Ok(vec![fact(dtype, x.cloned())])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}

impl Cumulative {
    /// The axis that is summed along.
    ///
    /// # Errors
    /// `Shape` where it is out of range, `InvalidValue` where it is not known.
    pub fn axis(&self, rank: usize, values: &dyn InputValues) -> Result<usize> {
        let axis = values.int(1)?.ok_or_else(|| missing_value(1))?;
        normalize_axis(axis, rank)
    }
}

impl Operator for Softmax {
    fn name(&self) -> &'static str {
        match self.kind {
            SoftmaxKind::Softmax => "Softmax",
            SoftmaxKind::LogSoftmax => "LogSoftmax",
            SoftmaxKind::Hardmax => "Hardmax",
        }
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::computed(Axes::Kept)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, &FLOATS)?;
        let x = ctx.shape(0)?;
        if let Some(x) = x {
            normalize_axis(self.axis, x.rank())?;
        }
        Ok(vec![fact(dtype, x.cloned())])
    }

    fn apart(&self, node: &NodeView, axis: usize) -> Option<Vec<usize>> {
        let along = normalize_axis(self.axis, node.rank(0)?).ok()?;
        (axis != along).then(|| vec![0])
    }

    fn renumbered(&self, _: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let axis = renumber::axis(self.axis, perm)?;
        Some(Renumbered::new(
            Softmax {
                axis,
                ..self.clone()
            },
            perm,
        ))
    }
}
