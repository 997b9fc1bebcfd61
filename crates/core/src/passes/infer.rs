//! Shape inference over a whole graph.

use crate::error::Result;
use crate::graph::Graph;
use crate::ops::{InferContext, InputFact};

/// Writes what shape inference finds into the values of the graph, in the order of its nodes.
/// Element types that an operator cannot tell stay as the file declares them.
///
/// # Errors
/// What [`crate::ops::Operator::infer`] says of a node, with the node's name.
pub fn infer_graph(graph: &mut Graph) -> Result<()> {
    for i in 0..graph.nodes.len() {
        let node = &graph.nodes[i];
        let inputs: Vec<Option<InputFact>> = node
            .inputs
            .iter()
            .map(|v| {
                v.map(|v| InputFact {
                    fact: graph.value(v).fact.clone(),
                    value: graph.value(v).constant.clone(),
                })
            })
            .collect();
        let facts = node
            .op
            .infer(&InferContext {
                inputs: &inputs,
                outputs: node.outputs.len(),
            })
            .map_err(|e| e.at(&node.name, node.op.name()))?;
        let outputs = node.outputs.clone();
        for (v, mut fact) in outputs.into_iter().zip(facts) {
            let value = graph.value_mut(v);
            fact.dtype = fact.dtype.or(value.fact.dtype);
            value.fact = fact;
        }
    }
    Ok(())
}
