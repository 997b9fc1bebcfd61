//! From a node to the dispatches that compute it, without touching the device.

mod activation;
pub(crate) mod elements;
mod lower;
mod pack;
pub(crate) mod walk;
pub(crate) mod window;

pub(crate) use lower::{
    Caps, Dispatch, Lowered, Lowering, Lowers, NO_HALF, Stop, WEIGHT, ok, refuse, spread, wrong,
};
pub(crate) use pack::{Pack, PackKind};
