//! Outputs that a session has, where its model gives more.

use super::Keep;
use crate::error::{Error, ErrorCode, Result};
use crate::graph::Graph;

/// Leaves out of the graph all outputs but these, the nodes that nothing else needs, and the inputs that nothing else reads.
///
/// # Errors
/// `Input` for a pattern that fits no output.
pub(super) fn only(graph: &mut Graph, wanted: &Keep) -> Result<()> {
    let given = graph.given_outputs().len();
    let names = graph.given_outputs().iter();
    let names: Vec<_> = names.map(|&v| graph.value(v).name.clone()).collect();
    if let Some(pattern) = wanted.idle(names.iter().map(String::as_str)) {
        let e = Error::new(ErrorCode::Input, format!("there is no output `{pattern}`"));
        return Err(e.with_expected(names.join(", ")));
    }
    let after = graph.outputs.split_off(given);
    let mut named = names.iter();
    graph
        .outputs
        .retain(|_| named.next().is_some_and(|name| wanted.has(name)));
    graph.outputs.extend(after);
    let mut needed = vec![false; graph.values.len()];
    for v in &graph.outputs {
        needed[v.0] = true;
    }
    let mut kept = Vec::with_capacity(graph.nodes.len());
    // Nodes stand behind those that they read.
    for node in graph.nodes.drain(..).rev() {
        if node.outputs.iter().any(|v| needed[v.0]) {
            node.present_inputs().for_each(|v| needed[v.0] = true);
            kept.push(node);
        }
    }
    graph.nodes.extend(kept.into_iter().rev());
    for (value, needed) in graph.values.iter_mut().zip(&needed) {
        value.constant.take_if(|_| !needed);
    }
    // Variables are the last inputs, whether anything reads them or not.
    let given = graph.given_inputs().len();
    let variables = graph.inputs.split_off(given);
    graph.inputs.retain(|v| needed[v.0]);
    graph.inputs.extend(variables);
    Ok(())
}
