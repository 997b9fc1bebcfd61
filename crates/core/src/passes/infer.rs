//! Shape inference over a whole graph.

use super::known_dims::KnownDims;
use crate::error::{Result, dtype_error};
use crate::fact::InputFact;
use crate::graph::{Graph, InferContext, Names, Node};
use crate::interrupt::{Interrupt, Meter};
use crate::ops::check_rank;

/// Operations of inferring a node.
const NODE: usize = 1 << 10;

/// Writes what shape inference finds into the values of the graph, in the order of its nodes.
/// Element types that an operator cannot tell stay as the file declares them.
///
/// # Errors
/// What [`crate::graph::Operator::infer`] says of a node, with the node's name, and `Aborted` where loading is to stop.
pub fn infer_graph(graph: &mut Graph, interrupt: &Interrupt) -> Result<()> {
    let mut known = KnownDims::default();
    let meter = Meter::new(interrupt);
    for i in 0..graph.nodes.len() {
        meter.spend(NODE)?;
        let node = &graph.nodes[i];
        let mut elements = vec![None; node.inputs.len()];
        for &k in node.op.value_inputs() {
            if let Some(v) = node.input(k) {
                elements[k] = known.get(graph, v);
            }
        }
        let inputs = graph.input_facts(&node.inputs);
        let ctx = InferContext {
            inputs: &inputs,
            outputs: node.outputs.len(),
            interrupt,
            names: Names::of(graph, node),
        };
        check_forms(node, &inputs)?;
        let facts = node
            .op
            .infer_with_elements(&ctx, &elements)
            .map_err(|e| e.at(&node.name, node.op.name()))?;
        let outputs = node.outputs.clone();
        for (v, mut fact) in outputs.into_iter().zip(facts) {
            check_rank(fact.rank().unwrap_or(0)).map_err(|e| {
                let node = &graph.nodes[i];
                e.at(&node.name, node.op.name())
            })?;
            let value = graph.value_mut(v);
            fact.dtype = fact.dtype.or(value.fact.dtype);
            value.fact = fact;
        }
        known.follow(graph, &graph.nodes[i]);
    }
    Ok(())
}

/// `DType` where an operator on tensors is given something else.
fn check_forms(node: &Node, inputs: &[Option<InputFact>]) -> Result<()> {
    let mut others = inputs.iter().flatten().map(|i| i.fact.kind);
    match others.find(|kind| !kind.is_tensor()) {
        Some(kind) if !node.op.on_values() => Err(dtype_error("the operator takes tensors only")
            .with_got(kind)
            .at(&node.name, node.op.name())),
        _ => Ok(()),
    }
}
