//! Removes what no output needs.

use super::patch::Patch;
use crate::error::Result;
use crate::graph::{Graph, Node};

/// Removes nodes whose outputs nobody reads, optional outputs nobody reads, and the data of
/// constants nobody reads. True where nodes or outputs went.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn run(graph: &mut Graph) -> Result<bool> {
    let (live, changed) = sweep(graph, true)?;
    for (value, live) in graph.values.iter_mut().zip(live) {
        if !live {
            value.constant = None;
        }
    }
    Ok(changed)
}

/// Removes nodes whose outputs nobody reads, but keeps the data of constants. True where one went.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn sweep_nodes(graph: &mut Graph) -> Result<bool> {
    Ok(sweep(graph, false)?.1)
}

/// Which values are read, and whether a node went, or an optional output if `outputs`.
fn sweep(graph: &mut Graph, outputs: bool) -> Result<(Vec<bool>, bool)> {
    let mut live = vec![false; graph.values.len()];
    for v in &graph.outputs {
        live[v.0] = true;
    }
    let mut keep = vec![false; graph.nodes.len()];
    for (keep, node) in keep.iter_mut().zip(&graph.nodes).rev() {
        *keep = node.outputs.iter().any(|v| live[v.0]);
        if *keep {
            for v in node.present_inputs() {
                live[v.0] = true;
            }
        }
    }
    let spare = |node: &Node| {
        let last = node.outputs.last().is_some_and(|v| !live[v.0]);
        last && node.outputs.len() > 1 && node.op.has_optional_outputs()
    };
    if keep.iter().all(|&keep| keep) && !(outputs && graph.nodes.iter().any(spare)) {
        return Ok((live, false));
    }
    let mut patch = Patch::forward(graph);
    for keep in keep {
        let Some(mut node) = patch.next_node() else {
            break;
        };
        if !keep {
            patch.changed = true;
            continue;
        }
        while outputs && spare(&node) {
            node.outputs.pop();
            patch.changed = true;
        }
        patch.push(node);
    }
    let changed = patch.finish(graph)?;
    Ok((live, changed))
}
