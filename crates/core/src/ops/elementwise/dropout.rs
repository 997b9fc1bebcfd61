//! Dropout, which keeps everything at inference.

use crate::Reflect;
use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, NodeView, Operator};
use crate::ops::rules::{FLOATS, fact, some_of};

/// Dropout at inference: the data, and a mask of ones if asked for.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Dropout;

impl Operator for Dropout {
    fn name(&self) -> &'static str {
        "Dropout"
    }

    signature! { (data) -> (output, optional mask) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let data = ctx.fact(0)?.clone();
        FLOATS.check(0, data.dtype)?;
        let mask = fact(Some(DType::Bool), data.shape.clone());
        Ok(some_of(ctx, [data, mask]))
    }

    fn has_optional_outputs(&self) -> bool {
        true
    }

    fn passes_on(&self, _: &NodeView) -> bool {
        true
    }
}
