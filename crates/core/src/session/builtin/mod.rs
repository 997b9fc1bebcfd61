//! What [`builtin`](crate::builtin) does in a run: control flow, values that are no tensors, and the tensors that
//! take the user's inputs and hand out results.

pub(super) mod control;
mod ports;
pub(super) mod values;

pub(super) use ports::Ports;
