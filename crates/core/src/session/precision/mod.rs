//! The precision that nodes compute in: where the options fix it ([`forced`]), and where half
//! precision does no harm ([`mixed`]).

mod between;
mod forced;
mod mixed;

pub(super) use forced::force;
pub use mixed::MixedPrecision;
pub(super) use mixed::choose;
