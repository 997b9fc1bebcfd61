//! Operators that repeat a tensor, or keep a triangle of it.

use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Axes, Flow, InferContext, NodeSpec, NodeView, Operator, Renumbered};
use crate::ops::axes::MAX_RANK;
use crate::ops::renumber;
use crate::ops::rules::{
    INDICES, InputValues, broadcast, fact, missing_value, shaped_by_elements, sizes, times,
    wrong_count,
};

/// Inputs: data, repeats.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Tile;

/// Inputs: data, shape; broadcast both ways.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Expand;

/// Keeps one triangle of the last two dimensions. Inputs: data, optional diagonal `k`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Trilu {
    pub upper: bool,
}

impl Tile {
    /// How often each axis is repeated.
    ///
    /// # Errors
    /// `Shape` where there are not `rank` numbers, `InvalidValue` where one is negative or they are
    /// not known.
    pub fn repeats(&self, rank: usize, values: &dyn InputValues) -> Result<Vec<usize>> {
        let repeats = sizes(&values.need_ints(1)?, "a number of repeats")?;
        if repeats.len() != rank {
            return Err(wrong_count("the list of repeats", rank, repeats.len()));
        }
        Ok(repeats)
    }
}

impl Operator for Tile {
    fn name(&self) -> &'static str {
        "Tile"
    }

    signature! { (data, repeats) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Kept)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        let shape = match ctx.shape(0)? {
            Some(x) if ctx.value(1).is_some() => {
                let repeats = self.repeats(x.rank(), ctx)?;
                let dims = x.0.iter().zip(repeats);
                let dims = dims.map(|(d, r)| times(d, &Dim::Known(r)));
                Some(Shape(dims.collect::<Result<_>>()?))
            }
            Some(x) => Some(Shape::unknown(x.rank())),
            None => None,
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }

    fn renumbered(&self, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let counts = renumber::numbers(&ctx.ints(1).ok()??, perm)?;
        Renumbered::new(self.clone(), perm).with_ints(1, &counts)
    }

    fn passes_on(&self, node: &NodeView) -> bool {
        node.keeps_shape() && !node.is_empty()
    }

    fn is_view_for(&self, node: &NodeSpec) -> bool {
        node.keeps_count()
    }
}

impl Operator for Expand {
    fn name(&self) -> &'static str {
        "Expand"
    }

    signature! { (data, shape) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Other)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        let length = ctx.length(1)?;
        let target = match (ctx.ints(1)?, length) {
            (Some(t), _) => Some(Shape::fixed(&sizes(&t, "a dimension of the new shape")?)),
            (None, Some(n)) if n <= MAX_RANK => Some(Shape::unknown(n)),
            _ => None,
        };
        let shape = match (ctx.shape(0)?, target) {
            (Some(x), Some(target)) => Some(broadcast(x, &target)?),
            _ => None,
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn infer_with_elements(
        &self,
        ctx: &InferContext,
        elements: &[Option<Vec<Dim>>],
    ) -> Result<Vec<Fact>> {
        let facts = self.infer(ctx)?;
        let target = |x: &Shape, target: &[Dim]| broadcast(x, &Shape(target.to_vec()));
        let better = shaped_by_elements(ctx, elements, target)?;
        Ok(better.map_or(facts, |fact| vec![fact]))
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }

    fn renumbered(&self, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let counts = renumber::numbers(&ctx.ints(1).ok()??, perm)?;
        Renumbered::new(self.clone(), perm).with_ints(1, &counts)
    }

    fn passes_on(&self, node: &NodeView) -> bool {
        node.keeps_shape()
    }

    fn is_view_for(&self, node: &NodeSpec) -> bool {
        node.keeps_count()
    }
}

impl Trilu {
    /// The diagonal that the triangle begins on; 0 without an input.
    ///
    /// # Errors
    /// `InvalidValue` where it is given but not known.
    pub fn diagonal(&self, values: &dyn InputValues) -> Result<i64> {
        match (values.has(1), values.int(1)?) {
            (_, Some(k)) => Ok(k),
            (true, None) => Err(missing_value(1)),
            (false, None) => Ok(0),
        }
    }
}

impl Operator for Trilu {
    fn name(&self) -> &'static str {
        "Trilu"
    }

    signature! { (data, optional k) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed_optional(1, &INDICES)?;
        ctx.scalar(1)?;
        let x = ctx.shape_of_min_rank(0, 2)?;
        Ok(vec![fact(dtype, x.cloned())])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}
