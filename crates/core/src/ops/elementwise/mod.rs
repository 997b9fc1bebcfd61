//! Pointwise operators, with numpy broadcasting where there are several inputs.

mod binary;
mod cast;
mod dropout;
mod select;
mod unary;

pub use binary::{Binary, BinaryKind};
pub use cast::{BitCast, Cast, CastLike};
pub use dropout::Dropout;
pub use select::{Clip, Where};
pub use unary::{Unary, UnaryKind};

use crate::dim::Shape;
use crate::error::Result;
use crate::graph::InferContext;
use crate::ops::rules::broadcast;

/// The shape that the first `count` inputs broadcast to; `None` where a rank is unknown.
fn broadcast_inputs(ctx: &InferContext, count: usize) -> Result<Option<Shape>> {
    let mut all = Some(Shape::default());
    for i in 0..count {
        all = match (all, ctx.shape(i)?) {
            (Some(a), Some(b)) => Some(broadcast(&a, b)?),
            _ => None,
        };
    }
    Ok(all)
}
