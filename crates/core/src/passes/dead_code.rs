//! Removes what no output needs.

use crate::graph::Graph;

/// Removes nodes whose outputs nobody reads, optional outputs nobody reads, and the data of
/// constants nobody reads. True where nodes or outputs went.
pub fn run(graph: &mut Graph) -> bool {
    let (live, mut changed) = sweep(graph);
    for node in &mut graph.nodes {
        let optional = node.op.has_optional_outputs();
        while optional && node.outputs.len() > 1 && node.outputs.last().is_some_and(|v| !live[v.0])
        {
            node.outputs.pop();
            changed = true;
        }
    }
    for (value, live) in graph.values.iter_mut().zip(live) {
        if !live {
            value.constant = None;
        }
    }
    changed
}

/// Removes nodes whose outputs nobody reads, but keeps the data of constants.
pub fn sweep_nodes(graph: &mut Graph) -> bool {
    sweep(graph).1
}

/// Which values are read, and whether a node went.
fn sweep(graph: &mut Graph) -> (Vec<bool>, bool) {
    let mut live = vec![false; graph.values.len()];
    for v in &graph.outputs {
        live[v.0] = true;
    }
    let mut keep = vec![false; graph.nodes.len()];
    for (i, node) in graph.nodes.iter().enumerate().rev() {
        keep[i] = node.outputs.iter().any(|v| live[v.0]);
        if keep[i] {
            for v in node.present_inputs() {
                live[v.0] = true;
            }
        }
    }
    let before = graph.nodes.len();
    let mut kept = keep.into_iter();
    graph.nodes.retain(|_| kept.next().unwrap_or(true));
    (live, graph.nodes.len() < before)
}
