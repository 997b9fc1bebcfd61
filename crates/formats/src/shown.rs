//! What a graph is made of, in words, for the tests of the formats.

use kilim_core::graph::Graph;

/// The shapes of inputs and outputs in words, with their names.
pub fn ports(graph: &Graph) -> Vec<String> {
    let ports = graph.inputs.iter().chain(&graph.outputs);
    let shown = ports.map(|&v| {
        let value = graph.value(v);
        format!("{} {}", value.name, value.fact).replace(", ", ",")
    });
    shown.collect()
}

/// The names of operators in order.
pub fn operators(graph: &Graph) -> Vec<&str> {
    graph.nodes.iter().map(|n| n.op.name()).collect()
}
