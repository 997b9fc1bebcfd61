//! Operators that make tensors from shapes and scalars.

use std::sync::Arc;

use super::axes::MAX_RANK;
use super::rules::{
    INDICES, InputValues, NUMBERS, fact, missing_value, partly_known, sizes, wrong_count,
};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error, value_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator, Precision};
use crate::tensor::Tensor;

/// The shape as `int64[rank]`, of dimensions `start..end`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ShapeOf {
    pub start: i64,
    pub end: Option<i64>,
}

/// The number of elements as an `int64` scalar.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Size;

/// Input: shape. Every element is `value` (one element).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ConstantOfShape {
    pub value: Tensor,
}

/// Inputs: start, limit, delta (scalars).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Range;

/// Ones on diagonal `k` of a matrix with the shape of the input.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct EyeLike {
    pub dtype: Option<DType>,
    pub k: i64,
}

impl ShapeOf {
    /// The dimensions that are asked for, of a tensor of this rank.
    pub fn range(&self, rank: usize) -> std::ops::Range<usize> {
        let rank = i64::try_from(rank).unwrap_or(i64::MAX);
        let clamp = |v: i64| {
            let v = if v < 0 { v.saturating_add(rank) } else { v };
            v.clamp(0, rank) as usize
        };
        let start = clamp(self.start);
        start..self.end.map_or(rank as usize, clamp).max(start)
    }
}

impl Operator for ShapeOf {
    fn name(&self) -> &'static str {
        "Shape"
    }

    signature! { (data) -> (shape) }

    fn flow(&self) -> Flow {
        Flow::MEASURED
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let length = ctx.shape(0)?.map(|x| self.range(x.rank()).len());
        let dim = length.map_or(Dim::Unknown, Dim::Known);
        Ok(vec![Fact::new(DType::I64, Shape(vec![dim]))])
    }

    fn elements(&self, ctx: &InferContext, _: &[Option<Vec<Dim>>]) -> Option<Vec<Dim>> {
        let dims = &ctx.shape(0).ok()??.0;
        Some(dims.get(self.range(dims.len()))?.to_vec())
    }

    fn shape_only(&self) -> bool {
        true
    }
}

impl Operator for Size {
    fn name(&self) -> &'static str {
        "Size"
    }

    signature! { (data) -> (size) }

    fn flow(&self) -> Flow {
        Flow::MEASURED
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.input(0)?;
        Ok(vec![Fact::fixed(DType::I64, &[])])
    }

    fn elements(&self, ctx: &InferContext, _: &[Option<Vec<Dim>>]) -> Option<Vec<Dim>> {
        let dims = &ctx.shape(0).ok()??.0;
        let one = Dim::Known(1);
        Some(vec![dims.iter().fold(one, |n, d| n.times(d))])
    }

    fn shape_only(&self) -> bool {
        true
    }
}

impl Operator for ConstantOfShape {
    fn name(&self) -> &'static str {
        "ConstantOfShape"
    }

    signature! { (shape) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE.with_precision(Precision::Named)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &INDICES)?;
        if self.value.len() != 1 {
            return Err(wrong_count("the value to fill with", 1, self.value.len()));
        }
        let length = ctx.length(0)?;
        let shape = match ctx.ints(0)? {
            Some(dims) => Some(Shape::fixed(&sizes(&dims, "a dimension")?)),
            None => length.filter(|&n| n <= MAX_RANK).map(Shape::unknown),
        };
        Ok(vec![fact(Some(self.value.dtype()), shape)])
    }

    fn infer_with_elements(
        &self,
        ctx: &InferContext,
        elements: &[Option<Vec<Dim>>],
    ) -> Result<Vec<Fact>> {
        let facts = self.infer(ctx)?;
        Ok(match partly_known(ctx, elements, 0) {
            Some(dims) => vec![Fact::new(self.value.dtype(), Shape(dims.to_vec()))],
            None => facts,
        })
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0]
    }

    fn in_precision(&self, dtype: DType) -> Option<Arc<dyn Operator>> {
        self.value.dtype().is_float().then_some(())?;
        let value = self.value.in_precision(dtype).ok()?;
        Some(Arc::new(ConstantOfShape { value }))
    }
}

impl Range {
    /// The number of elements, `max(ceil((limit - start) / delta), 0)`, in float64 for floats of every width, as in PyTorch.
    ///
    /// # Errors
    /// `InvalidValue` where the step is 0, the number is out of range or an input is not known.
    pub fn length(&self, values: &dyn InputValues) -> Result<usize> {
        let value = |i: usize| values.value(i).ok_or_else(|| missing_value(i));
        let all = [value(0)?, value(1)?, value(2)?];
        for (i, t) in all.iter().enumerate() {
            if t.len() != 1 {
                return Err(shape_error(format!("input {i} must be a scalar")));
            }
        }
        let zero = || value_error("the step of a range must not be 0");
        let out_of_range = || value_error("a range is too long");
        if all[0].dtype().is_float() {
            let number = |i: usize| -> Result<f64> { Ok(all[i].to_f64s()?[0]) };
            let (start, limit, delta) = (number(0)?, number(1)?, number(2)?);
            if delta == 0.0 {
                return Err(zero());
            }
            let span = limit - start;
            let length = (span / delta).ceil().max(0.0);
            return if (span / delta).is_nan() || length > i32::MAX.into() {
                Err(out_of_range().with_got(span / delta))
            } else {
                Ok(length as usize)
            };
        }
        let number = |i: usize| -> Result<i128> { Ok(all[i].to_i64s()?[0].into()) };
        let (start, limit, delta) = (number(0)?, number(1)?, number(2)?);
        if delta == 0 {
            return Err(zero());
        }
        let (span, step) = if delta > 0 {
            (limit - start, delta)
        } else {
            (start - limit, -delta)
        };
        let length = (span.max(0) + step - 1) / step;
        usize::try_from(length).map_err(|_| out_of_range().with_got(length))
    }
}

impl Operator for Range {
    fn name(&self) -> &'static str {
        "Range"
    }

    signature! { (start, limit, delta) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        for i in 0..3 {
            ctx.typed(i, &NUMBERS)?;
            ctx.scalar(i)?;
        }
        let dtype = ctx.common_type(0..3)?;
        let dim = if ctx.known(self.value_inputs()) {
            Dim::Known(self.length(ctx)?)
        } else {
            Dim::Unknown
        };
        Ok(vec![fact(dtype, Some(Shape(vec![dim])))])
    }

    fn infer_with_elements(
        &self,
        ctx: &InferContext,
        elements: &[Option<Vec<Dim>>],
    ) -> Result<Vec<Fact>> {
        let mut facts = self.infer(ctx)?;
        let element = |i: usize| match elements.get(i) {
            Some(Some(dims)) if dims.len() == 1 => dims[0].clone(),
            _ => Dim::Unknown,
        };
        // In steps of 1 there are as many as limit and start differ.
        let count = element(1).minus(&element(0));
        if element(2) == Dim::Known(1) && count != Dim::Unknown {
            facts[0].shape = Some(Shape(vec![count]));
        }
        Ok(facts)
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0, 1, 2]
    }
}

impl Operator for EyeLike {
    fn name(&self) -> &'static str {
        "EyeLike"
    }

    signature! { (like) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE.with_precision(Precision::Named)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = self.dtype.or(ctx.dtype(0)?);
        let shape = match ctx.shape_of_rank(0, 2)? {
            Some(x) => x.clone(),
            None => Shape::unknown(2),
        };
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn shape_only(&self) -> bool {
        true
    }

    fn in_precision(&self, dtype: DType) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(EyeLike {
            dtype: Some(dtype),
            k: self.k,
        }))
    }
}
