//! The backend that is always there. It alone runs control flow and what takes or gives values that
//! are no tensors, and carries tensors from one backend to another; the tensors that take the user's
//! inputs and hand out results are its own.
//!
//! Its part of a run is in `session/builtin/`, where it is given the executor that runs the bodies of control flow. Other backends are given
//! stages, and cannot even name it:
//!
//! ```compile_fail,E0603
//! use kilim_core::session::Runner;
//! ```

pub(crate) mod layouts;
mod permute;
mod port;

use crate::graph::{Graph, Node};
use crate::ids::BackendId;

pub use layouts::PortLayout;
pub use permute::{StoredTensor, copy};
pub use port::{Port, PortLayouts};

/// The id under which reports list what `builtin` does.
pub const BUILTIN: BackendId = BackendId::new("builtin");

/// True where `builtin` runs the node, between the ordinary ones of two stages.
pub fn runs(graph: &Graph, node: &Node) -> bool {
    let mut values = node.present_inputs().chain(node.outputs.iter().copied());
    !node.op.subgraphs().is_empty() || values.any(|v| !graph.value(v).fact.kind.is_tensor())
}
