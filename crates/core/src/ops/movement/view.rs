//! Operators that give the elements of a tensor another shape.

use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error, value_error};
use crate::fact::Fact;
use crate::graph::{Axes, Flow, InferContext, Operator};
use crate::ops::axes::{MAX_RANK, check_rank, normalize_axes, normalize_axis};
use crate::ops::rules::{
    INDICES, InputValues, fact, shaped_by_elements, size, too_large, unify, volume,
};

/// Inputs: data, shape. `0` copies a dimension unless `allow_zero`; one `-1` is computed.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Reshape {
    pub allow_zero: bool,
}

/// Inputs: data, optional axes. Without axes every dimension of 1 goes.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Squeeze;

/// Inputs: data, axes (of the output).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Unsqueeze;

/// Reshapes to two dimensions, split before `axis` (which may be the rank).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Flatten {
    pub axis: i64,
}

/// What is left of a reshaped tensor once the dimensions that are copied are taken out.
struct Remainder {
    /// The product of the known dimensions.
    known: usize,
    /// The dimensions that are not.
    open: Vec<Dim>,
}

impl Remainder {
    fn new(x: &Shape, copied: &[usize]) -> Result<Remainder> {
        let mut rest = Remainder {
            known: 1,
            open: Vec::new(),
        };
        for (i, d) in x.0.iter().enumerate() {
            match d {
                _ if copied.contains(&i) => {}
                Dim::Known(n) => rest.known = rest.known.checked_mul(*n).ok_or_else(too_large)?,
                other => rest.open.push(other.clone()),
            }
        }
        Ok(rest)
    }

    /// The dimension that `-1` stands for beside dimensions whose product is `beside`.
    fn infer(&self, beside: usize) -> Option<Dim> {
        match self.open.as_slice() {
            [] if beside == 0 => None,
            [] => self
                .known
                .is_multiple_of(beside)
                .then(|| Dim::Known(self.known / beside)),
            [one] if self.known == beside && beside > 0 => Some(one.clone()),
            _ => Some(Dim::Unknown),
        }
    }

    /// True where this can be `count` elements.
    fn can_be(&self, count: usize) -> bool {
        match (self.open.is_empty(), self.known) {
            (true, known) => known == count,
            (false, 0) => count == 0,
            (false, known) => count.is_multiple_of(known),
        }
    }
}

impl Reshape {
    /// The new shape, with `0` and `-1` replaced.
    ///
    /// # Errors
    /// `Shape` where the number of elements differs, `InvalidValue` where the shape is not valid.
    pub fn resolve(&self, shape: &[usize], values: &dyn InputValues) -> Result<Vec<usize>> {
        let target = values.need_ints(1)?;
        let resolved = self.target(&Shape::fixed(shape), &target)?;
        resolved.concrete().ok_or_else(too_large)
    }

    fn target(&self, x: &Shape, target: &[i64]) -> Result<Shape> {
        let copies = |d: i64| d == 0 && !self.allow_zero;
        let copied: Vec<usize> = (0..target.len()).filter(|&i| copies(target[i])).collect();
        if let Some(i) = copied.iter().find(|&&i| i >= x.rank()) {
            return Err(shape_error(format!("dimension {i} to copy is not there")).with_got(x));
        }
        let inferred = target.iter().filter(|&&d| d == -1).count();
        if inferred > 1 || (inferred == 1 && self.allow_zero && target.contains(&0)) {
            return Err(
                value_error("a shape with more than one dimension to compute")
                    .with_got(format!("{target:?}")),
            );
        }
        let mut beside = 1usize;
        for &d in target.iter().filter(|&&d| d != -1 && !copies(d)) {
            let d = size(d, "a dimension of the new shape")?;
            beside = beside.checked_mul(d).ok_or_else(too_large)?;
        }
        let rest = Remainder::new(x, &copied)?;
        let differs = || {
            shape_error("the new shape has another number of elements")
                .with_expected(format!("as many elements as {x}"))
                .with_got(format!("{target:?}"))
        };
        let computed = if inferred == 1 {
            rest.infer(beside).ok_or_else(differs)?
        } else if rest.can_be(beside) || copied.iter().any(|&i| x.0[i] == Dim::Known(0)) {
            Dim::Unknown
        } else {
            return Err(differs());
        };
        let dims = target.iter().enumerate().map(|(i, &d)| match d {
            -1 => computed.clone(),
            0 if !self.allow_zero => x.0[i].clone(),
            d => usize::try_from(d).map_or(Dim::Unknown, Dim::Known),
        });
        Ok(Shape(dims.collect()))
    }

    /// The new shape where only some of its elements are known. One that is not may be found by
    /// counting: what both shapes share is left out.
    fn symbolic_target(&self, x: &Shape, target: &[Dim]) -> Result<Shape> {
        let copies = |d: &Dim| *d == Dim::Known(0) && !self.allow_zero;
        let copied: Vec<usize> = (0..target.len()).filter(|&i| copies(&target[i])).collect();
        let mut rest = Remainder::new(x, &copied)?;
        let (mut beside, mut unknown) = (1usize, 0);
        for d in target.iter().filter(|d| !copies(d)) {
            match d {
                Dim::Known(n) => beside = beside.checked_mul(*n).ok_or_else(too_large)?,
                Dim::Symbol(_) | Dim::Sum(_) => match rest.open.iter().position(|o| o == d) {
                    Some(shared) => drop(rest.open.remove(shared)),
                    None => unknown += 1,
                },
                Dim::Unknown => unknown += 1,
            }
        }
        let computed = match unknown {
            1 => rest.infer(beside).unwrap_or(Dim::Unknown),
            _ => Dim::Unknown,
        };
        let dims = target.iter().enumerate().map(|(i, d)| match d {
            d if copies(d) => x.0.get(i).cloned().unwrap_or(Dim::Unknown),
            Dim::Unknown => computed.clone(),
            d => d.clone(),
        });
        Ok(Shape(dims.collect()))
    }
}

impl Operator for Reshape {
    fn name(&self) -> &'static str {
        "Reshape"
    }

    signature! { (data, shape) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Regrouped)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        let length = ctx.length(1)?;
        let shape = match (ctx.shape(0)?, ctx.ints(1)?) {
            (Some(x), Some(target)) => Some(self.target(x, &target)?),
            (None, Some(target)) => {
                let dim = |&d: &i64| match usize::try_from(d) {
                    Ok(n) if n > 0 || self.allow_zero => Dim::Known(n),
                    _ => Dim::Unknown,
                };
                Some(Shape(target.iter().map(dim).collect()))
            }
            _ => length.filter(|&n| n <= MAX_RANK).map(Shape::unknown),
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn infer_with_elements(
        &self,
        ctx: &InferContext,
        elements: &[Option<Vec<Dim>>],
    ) -> Result<Vec<Fact>> {
        let facts = self.infer(ctx)?;
        let target = |x: &Shape, target: &[Dim]| self.symbolic_target(x, target);
        let better = shaped_by_elements(ctx, elements, target)?;
        Ok(better.map_or(facts, |fact| vec![fact]))
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }

    fn is_view(&self) -> bool {
        true
    }
}

impl Squeeze {
    /// The dimensions that go.
    ///
    /// # Errors
    /// `Shape` where one is out of range, named twice or not 1.
    pub fn axes(&self, shape: &[usize], values: &dyn InputValues) -> Result<Vec<usize>> {
        let all = || (0..shape.len()).filter(|&i| shape[i] == 1).collect();
        let given = values.has(1).then(|| values.need_ints(1)).transpose()?;
        given.map_or_else(|| Ok(all()), |axes| named_axes(&Shape::fixed(shape), &axes))
    }
}

fn named_axes(x: &Shape, axes: &[i64]) -> Result<Vec<usize>> {
    let axes = normalize_axes(axes, x.rank())?;
    for &a in &axes {
        unify(&x.0[a], &Dim::Known(1), || {
            format!("dimension {a} to squeeze")
        })?;
    }
    Ok(axes)
}

impl Operator for Squeeze {
    fn name(&self) -> &'static str {
        "Squeeze"
    }

    signature! { (data, optional axes) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Regrouped)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed_optional(1, &INDICES)?;
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let keep = |axes: &[usize]| {
            let kept = x.0.iter().enumerate().filter(|(i, _)| !axes.contains(i));
            Shape(kept.map(|(_, d)| d.clone()).collect())
        };
        let shape = match (ctx.has(1), ctx.ints(1)?) {
            (_, Some(axes)) => Some(keep(&named_axes(x, &axes)?)),
            (true, None) => {
                let count = ctx.length(1)?;
                let rank = count.and_then(|n| x.rank().checked_sub(n));
                rank.map(Shape::unknown)
            }
            (false, None) => match x.concrete() {
                Some(dims) => Some(keep(&self.axes(&dims, ctx)?)),
                None => None,
            },
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }

    fn is_view(&self) -> bool {
        true
    }
}

impl Operator for Unsqueeze {
    fn name(&self) -> &'static str {
        "Unsqueeze"
    }

    signature! { (data, axes) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Regrouped)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let shape = match ctx.ints(1)? {
            Some(axes) => {
                let rank = x.rank().saturating_add(axes.len());
                check_rank(rank)?;
                let axes = normalize_axes(&axes, rank)?;
                let mut kept = x.0.iter();
                let dims = (0..rank).map(|i| {
                    if axes.contains(&i) {
                        Dim::Known(1)
                    } else {
                        kept.next().map_or(Dim::Unknown, Dim::clone)
                    }
                });
                Some(Shape(dims.collect()))
            }
            None => {
                let count = ctx.length(1)?;
                let rank = count.and_then(|n| x.rank().checked_add(n));
                rank.filter(|&r| r <= MAX_RANK).map(Shape::unknown)
            }
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }

    fn is_view(&self) -> bool {
        true
    }
}

impl Operator for Flatten {
    fn name(&self) -> &'static str {
        "Flatten"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Regrouped)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        let shape = match ctx.shape(0)? {
            Some(x) => {
                let rank = x.rank();
                let axis = match usize::try_from(self.axis) {
                    Ok(a) if a == rank => rank,
                    _ => normalize_axis(self.axis, rank)?,
                };
                let (outer, inner) = x.0.split_at(axis);
                Shape(vec![volume(outer)?, volume(inner)?])
            }
            None => Shape::unknown(2),
        };
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn is_view(&self) -> bool {
        true
    }
}
