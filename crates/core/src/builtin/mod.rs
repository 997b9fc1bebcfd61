//! The backend that is always there. It alone runs control flow and what takes or gives values that
//! are no tensors, and carries tensors from one backend to another; the tensors that take the user's
//! inputs and hand out results are its own.
//!
//! It alone is given the executor, which runs the bodies of control flow. Other backends are given
//! stages, and cannot even name it:
//!
//! ```compile_fail,E0603
//! use kilim_core::session::Runner;
//! ```

pub(crate) mod control;
mod layouts;
pub(crate) mod permute;
mod ports;
pub(crate) mod values;

use crate::backend::BackendId;
use crate::graph::{Graph, Node, Operator};

pub use layouts::PortLayout;
pub use permute::{StoredTensor, copy};
pub(crate) use ports::Ports;
pub use ports::{Port, PortLayouts};

/// The id under which reports list what `builtin` does.
pub const BUILTIN: BackendId = BackendId::new("builtin");

/// True where `builtin` runs the node, between the ordinary ones of two stages.
pub fn runs(graph: &Graph, node: &Node) -> bool {
    let mut values = node.present_inputs().chain(node.outputs.iter().copied());
    !node.op.subgraphs().is_empty() || values.any(|v| !graph.value(v).fact.kind.is_tensor())
}

/// True where an operator may be given something else than tensors.
pub(crate) fn takes_values(op: &dyn Operator) -> bool {
    !op.subgraphs().is_empty() || values::of(op).is_some()
}
