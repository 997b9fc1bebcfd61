//! Elements in another order, joined or taken apart.

use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error};
use crate::fact::Fact;
use crate::graph::{Axes, Flow, InferContext, NodeSpec, NodeView, Operator, Renumbered};
use crate::ops::axes::{MAX_RANK, normalize_axis};
use crate::ops::renumber;
use crate::ops::rules::{INDICES, InputValues, fact, sizes, sum, unify_shapes, wrong_count};

/// Output dimension `i` is input dimension `perm[i]`; an empty `perm` reverses.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Transpose {
    pub perm: Vec<usize>,
}

/// Any number of inputs along `axis`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Concat {
    pub axis: i64,
}

/// Inputs: data, optional sizes. Without sizes, equal parts (the last smaller).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Split {
    pub axis: i64,
}

/// Reverses the first `lens[b]` elements along `time_axis`. Inputs: data, lens.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ReverseSequence {
    pub batch_axis: usize,
    pub time_axis: usize,
}

impl Transpose {
    /// The input dimension that each output dimension is.
    ///
    /// # Errors
    /// `Shape` where the attribute is no permutation of the dimensions.
    pub fn resolve(&self, rank: usize) -> Result<Vec<usize>> {
        if self.perm.is_empty() {
            return Ok((0..rank).rev().collect());
        }
        let mut sorted = self.perm.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..rank) {
            return Err(shape_error("the permutation does not fit the data")
                .with_expected(format!("a permutation of {rank} dimensions"))
                .with_got(format!("{:?}", self.perm)));
        }
        Ok(self.perm.clone())
    }
}

impl Operator for Transpose {
    fn name(&self) -> &'static str {
        "Transpose"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Other)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        let shape = match ctx.shape(0)? {
            Some(x) => {
                let perm = self.resolve(x.rank())?;
                Some(Shape(perm.iter().map(|&p| x.0[p].clone()).collect()))
            }
            None if self.perm.is_empty() => None,
            None => Some(Shape::unknown(self.perm.len().min(MAX_RANK))),
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn passes_on(&self, _: &NodeView) -> bool {
        !self.perm.is_empty() && self.perm.iter().enumerate().all(|(i, &p)| i == p)
    }

    fn is_view_for(&self, node: &NodeSpec) -> bool {
        let Some(x) = node.input(0) else {
            return false;
        };
        let perm = self.resolve(x.shape.len());
        perm.is_ok_and(|perm| perm.iter().filter(|&&p| x.shape[p] != 1).is_sorted())
    }
}

impl Operator for Concat {
    fn name(&self) -> &'static str {
        "Concat"
    }

    signature! { (list inputs) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved_from_all(Axes::Kept)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.input(0)?;
        let dtype = ctx.common_type(0..ctx.inputs.len())?;
        let mut all: Option<(Shape, Dim, usize)> = None;
        let mut open = false;
        for i in 0..ctx.inputs.len() {
            let Some(x) = ctx.shape(i)? else {
                open = true;
                continue;
            };
            let axis = normalize_axis(self.axis, x.rank())?;
            all = Some(match all {
                None => (x.clone(), x.0[axis].clone(), axis),
                Some((mut expected, length, axis)) => {
                    if let Some(d) = x.0.get(axis) {
                        expected.0[axis] = d.clone();
                    }
                    let shape = unify_shapes(x, &expected, || format!("input {i}"))?;
                    (shape, sum(&length, &x.0[axis])?, axis)
                }
            });
        }
        let shape = all.map(|(mut shape, length, axis)| {
            shape.0[axis] = if open { Dim::Unknown } else { length };
            shape
        });
        Ok(vec![fact(dtype, shape)])
    }

    fn elements(&self, _: &InferContext, elements: &[Option<Vec<Dim>>]) -> Option<Vec<Dim>> {
        let all: Option<Vec<Vec<Dim>>> = elements.iter().cloned().collect();
        Some(all?.concat())
    }

    fn renumbered(&self, _: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let axis = renumber::axis(self.axis, perm)?;
        Some(Renumbered::new(Concat { axis }, perm))
    }

    fn passes_on(&self, node: &NodeView) -> bool {
        node.inputs() == 1
    }

    fn is_view_for(&self, node: &NodeSpec) -> bool {
        // All inputs but the first are empty.
        node.keeps_count()
    }
}

impl Split {
    /// The lengths of the parts of a dimension: input 1 if it is there, else equal parts, the last of them
    /// perhaps smaller.
    ///
    /// # Errors
    /// `Shape` where the lengths do not add up to `dim`, `InvalidValue` where they are not known.
    pub fn sizes(
        &self,
        dim: usize,
        outputs: usize,
        values: &dyn InputValues,
    ) -> Result<Vec<usize>> {
        let parts = if values.has(1) {
            sizes(&values.need_ints(1)?, "the length of a part")?
        } else {
            let part = dim.div_ceil(outputs.max(1));
            let before = part.saturating_mul(outputs.saturating_sub(1));
            let Some(last) = dim.checked_sub(before) else {
                return Err(shape_error("a dimension does not divide into its parts")
                    .with_expected(format!("{before} or more"))
                    .with_got(dim));
            };
            let mut parts = vec![part; outputs.saturating_sub(1)];
            parts.push(last);
            parts
        };
        if parts.len() != outputs {
            return Err(wrong_count("the list of parts", outputs, parts.len()));
        }
        let total = parts.iter().try_fold(0usize, |n, &p| n.checked_add(p));
        if total != Some(dim) {
            return Err(shape_error("the parts do not add up to the dimension")
                .with_expected(dim)
                .with_got(format!("{parts:?}")));
        }
        Ok(parts)
    }
}

impl Operator for Split {
    fn name(&self) -> &'static str {
        "Split"
    }

    signature! { (data, optional sizes) -> (list outputs) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Kept)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed_optional(1, &INDICES)?;
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None); ctx.outputs]);
        };
        let axis = normalize_axis(self.axis, x.rank())?;
        let parts: Vec<Dim> = match (&x.0[axis], ctx.ints(1)?) {
            (Dim::Known(n), given) if given.is_some() || !ctx.has(1) => self
                .sizes(*n, ctx.outputs, ctx)?
                .into_iter()
                .map(Dim::Known)
                .collect(),
            (_, Some(given)) => {
                let given = sizes(&given, "the length of a part")?;
                if given.len() != ctx.outputs {
                    return Err(wrong_count("the list of parts", ctx.outputs, given.len()));
                }
                given.into_iter().map(Dim::Known).collect()
            }
            (whole, None) if ctx.outputs == 1 => vec![whole.clone()],
            _ => vec![Dim::Unknown; ctx.outputs],
        };
        let part = |d: Dim| {
            let mut shape = x.clone();
            shape.0[axis] = d;
            fact(dtype, Some(shape))
        };
        Ok(parts.into_iter().map(part).collect())
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }

    fn renumbered(&self, _: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let axis = renumber::axis(self.axis, perm)?;
        Some(Renumbered::new(Split { axis }, perm))
    }

    fn passes_on(&self, node: &NodeView) -> bool {
        node.inputs() == 1
    }
}

impl Operator for ReverseSequence {
    fn name(&self) -> &'static str {
        "ReverseSequence"
    }

    signature! { (data, lengths) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Other)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        let x = ctx.shape_of_min_rank(0, 2)?;
        if let Some(x) = x {
            let (batch, time) = (self.batch_axis, self.time_axis);
            if batch >= x.rank() || time >= x.rank() || batch == time {
                return Err(shape_error("batch and time axis do not fit the data")
                    .with_got(format!("axes {batch} and {time} of {x}")));
            }
            ctx.vector(1, &x.0[batch])?;
        }
        Ok(vec![fact(dtype, x.cloned())])
    }
}
