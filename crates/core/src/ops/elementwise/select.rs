//! Elements chosen by a condition, or by bounds.

use super::broadcast_inputs;
use crate::Reflect;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};
use crate::ops::rules::{BOOL, NUMBERS, fact};

/// `condition ? a : b`, all three broadcast.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Where;

/// `min(max(x, lower), upper)`; inputs x, optional lower, optional upper (scalars).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Clip;

impl Operator for Where {
    fn name(&self) -> &'static str {
        "Where"
    }

    signature! { (condition, a, b) -> (output) }

    fn flow(&self) -> Flow {
        Flow::joined(false)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.require(3)?;
        ctx.typed(0, &BOOL)?;
        let dtype = ctx.common_type([1, 2])?;
        Ok(vec![fact(dtype, broadcast_inputs(ctx, 3)?)])
    }
}

impl Operator for Clip {
    fn name(&self) -> &'static str {
        "Clip"
    }

    signature! { (data, optional lower, optional upper) -> (output) }

    fn flow(&self) -> Flow {
        Flow::MAPPED
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NUMBERS)?;
        let dtype = ctx.common_type(0..3)?;
        ctx.scalar(1)?;
        ctx.scalar(2)?;
        Ok(vec![fact(dtype, ctx.shape(0)?.cloned())])
    }
}
