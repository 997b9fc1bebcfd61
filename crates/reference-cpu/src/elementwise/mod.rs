//! Pointwise operators.

mod binary;
mod cast;
mod functions;
mod select;
mod unary;

use kilim_core::ops::{Binary, BitCast, Cast, CastLike, Clip, Dropout, Unary, Where};
use kilim_host::registry::{KernelRegistry, any};

pub(crate) use functions::Number;
pub(crate) use unary::Copy;

pub fn register(registry: &mut KernelRegistry) {
    registry.add_for_every_type::<Unary>(unary::accepts, unary::build);
    registry.add_for_every_type::<Binary>(binary::accepts, binary::build);
    registry.add_for_every_type::<Where>(select::accepts_where, select::build_where);
    registry.add::<Clip>(any, select::build_clip);
    registry.add::<Dropout>(any, select::build_dropout);
    registry.add_for_every_type::<Cast>(any, cast::build_cast);
    registry.add_for_every_type::<CastLike>(any, cast::build_cast_like);
    registry.add_for_every_type::<BitCast>(cast::accepts_bits, cast::build_bits);
}
