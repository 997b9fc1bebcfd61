//! Pointwise operators.

mod binary;
mod cast;
mod functions;
mod select;
mod unary;

use kilim_core::ops::{Binary, Cast, CastLike, Clip, Dropout, Unary, Where};

pub(crate) use functions::Number;
pub(crate) use unary::Copy;

use crate::registry::{KernelRegistry, any};

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<Unary>(unary::accepts, unary::build);
    registry.add::<Binary>(binary::accepts, binary::build);
    registry.add::<Where>(select::accepts_where, select::build_where);
    registry.add::<Clip>(any, select::build_clip);
    registry.add::<Dropout>(any, select::build_dropout);
    registry.add::<Cast>(any, cast::build);
    registry.add::<CastLike>(any, cast::build);
}
