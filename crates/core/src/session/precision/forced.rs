//! Precision by name.

use std::cell::RefCell;

use crate::builtin;
use crate::error::Result;
use crate::graph::Graph;
use crate::passes;
use crate::pin::{self, PrecisionPin};
use crate::report::PrecisionOverride;

/// Has the nodes that `pins` hold compute in their types, those in bodies of control flow too. Needs
/// inferred facts.
///
/// # Errors
/// `Unsupported` for a node that cannot compute in another type.
pub(in crate::session) fn force(
    graph: &mut Graph,
    pins: &[PrecisionPin],
) -> Result<Vec<PrecisionOverride>> {
    if pins.is_empty() {
        return Ok(Vec::new());
    }
    let held = RefCell::new(Vec::new());
    passes::retype_everywhere(graph, &|graph, node| {
        let op = node.op.name();
        let dtype = pin::precision_of(pins, &node.name, op)?;
        let dtypes = node.present_inputs().chain(node.outputs.iter().copied());
        let mut dtypes = dtypes.filter_map(|v| graph.value(v).fact.dtype);
        if builtin::runs(graph, node) || !dtypes.any(|d| d.is_float()) {
            return None;
        }
        held.borrow_mut().push(PrecisionOverride {
            node: node.name.clone(),
            op: op.to_string(),
            dtype: dtype.name().to_string(),
        });
        Some(dtype)
    })?;
    Ok(held.into_inner())
}
