//! Precision by name.

use std::cell::RefCell;
use std::collections::HashSet;

use crate::builtin;
use crate::error::{Error, ErrorCode, Result};
use crate::graph::Graph;
use crate::passes;
use crate::pin::{self, Pinned, PrecisionPin};
use crate::report::PrecisionOverride;

/// Has the nodes that `pins` hold compute in their types, those in bodies of control flow too. Needs
/// inferred facts.
///
/// # Errors
/// `InvalidValue` where no node has the name of a pin; `Unsupported` for a node that cannot compute
/// in another type.
pub(in crate::session) fn force(
    graph: &mut Graph,
    pins: &[PrecisionPin],
) -> Result<Vec<PrecisionOverride>> {
    if pins.is_empty() {
        return Ok(Vec::new());
    }
    let mut names = HashSet::new();
    collect_names(graph, &mut names);
    for pin in pins {
        if let Pinned::Node(name) = &pin.what
            && !names.contains(name.as_str())
        {
            let message = format!("no node is called `{name}`, whose precision the options give");
            return Err(Error::new(ErrorCode::InvalidValue, message)
                .with_hint("names are those of the report, after the passes"));
        }
    }
    drop(names);
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

fn collect_names<'a>(graph: &'a Graph, names: &mut HashSet<&'a str>) {
    for node in &graph.nodes {
        names.insert(&node.name);
        for body in node.op.subgraphs() {
            collect_names(body, names);
        }
    }
}
