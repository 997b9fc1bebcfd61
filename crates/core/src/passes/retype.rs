//! Computes chosen nodes in another floating-point type.

use std::collections::HashMap;

use super::edit::node;
use super::patch::Patch;
use super::{bodies, dead_code, infer_graph};
use crate::dtype::DType;
use crate::error::{Result, unsupported};
use crate::fact::{Fact, InputFact};
use crate::graph::{Graph, InferContext, Node, NodeId, ValueId};
use crate::interrupt::Interrupt;
use crate::ops::Cast;

/// Has nodes compute in the floating-point type that `wish` gives for them: what they read is cast,
/// constants here and now, and what they write is cast back for whoever wants it as it was. Needs
/// inferred facts.
///
/// # Errors
/// `Unsupported` for a node whose outputs do not take the type of its inputs; what shape inference
/// says of the result.
pub fn run(graph: &mut Graph, wish: &dyn Fn(NodeId) -> Option<DType>) -> Result<()> {
    let mut twins: HashMap<(ValueId, DType), ValueId> = HashMap::new();
    let mut patch = Patch::forward(graph);
    let mut ids = (0..).map(NodeId);
    while let (Some(mut n), Some(id)) = (patch.next_node(), ids.next()) {
        let Some(to) = wish(id) else {
            patch.push(n);
            continue;
        };
        if !follows(graph, &n, to) {
            let message =
                format!("it cannot compute in {to}: its outputs have a type of their own");
            return Err(unsupported(message).at(&n.name, n.op.name()));
        }
        for k in inputs_in_another(graph, &n, to) {
            let Some(v) = n.input(k) else { continue };
            let twin = match twins.get(&(v, to)) {
                Some(&twin) => twin,
                None => {
                    let twin = like(graph, v, to)?;
                    if graph.value(twin).constant.is_none() {
                        let name = graph.value(twin).name.clone();
                        patch.push(node(&name, Cast::new(to), vec![Some(v)], twin));
                    }
                    twins.insert((v, to), twin);
                    twin
                }
            };
            n.inputs[k] = Some(twin);
        }
        let mut back = Vec::new();
        for out in &mut n.outputs {
            let v = *out;
            if let Some(from) = other_float(graph, v, to) {
                let twin = like(graph, v, to)?;
                let name = format!("{}/{from}", graph.value(v).name);
                back.push(node(&name, Cast::new(from), vec![Some(twin)], v));
                twins.insert((v, to), twin);
                *out = twin;
            }
        }
        patch.push(n);
        back.into_iter().for_each(|node| patch.push(node));
    }
    patch.finish(graph)?;
    dead_code::run(graph)?;
    infer_graph(graph, &Interrupt::NEVER)
}

/// Applies [`run`] to the graph and to the bodies of its control flow.
///
/// # Errors
/// Those of [`run`].
pub fn everywhere(graph: &mut Graph, wish: &dyn Fn(&Graph, &Node) -> Option<DType>) -> Result<()> {
    bodies::for_each_inferred(graph, &Interrupt::NEVER, &mut |body| everywhere(body, wish))?;
    let wishes: Vec<Option<DType>> = graph.nodes.iter().map(|n| wish(graph, n)).collect();
    run(graph, &|id| wishes[id.0])
}

/// The inputs of a node that are cast where it computes in `to`.
fn inputs_in_another(graph: &Graph, node: &Node, to: DType) -> Vec<usize> {
    let planned = node.op.value_inputs();
    let cast = |k: &usize| {
        let v = node.input(*k);
        !planned.contains(k) && v.is_some_and(|v| other_float(graph, v, to).is_some())
    };
    (0..node.inputs.len()).filter(cast).collect()
}

/// The type of a value, where that is a floating-point type and not `to`.
fn other_float(graph: &Graph, v: ValueId, to: DType) -> Option<DType> {
    let dtype = graph.value(v).fact.dtype?;
    (dtype.is_float() && dtype != to).then_some(dtype)
}

/// Whether the node's outputs are of type `to` where its inputs are.
fn follows(graph: &Graph, node: &Node, to: DType) -> bool {
    let cast = inputs_in_another(graph, node, to);
    let inputs: Vec<Option<InputFact>> = node
        .inputs
        .iter()
        .enumerate()
        .map(|(k, v)| {
            v.map(|v| {
                let value = graph.value(v);
                let turned = cast.contains(&k);
                InputFact {
                    fact: Fact {
                        dtype: if turned { Some(to) } else { value.fact.dtype },
                        ..value.fact.clone()
                    },
                    value: value.constant.clone().filter(|_| !turned),
                }
            })
        })
        .collect();
    let inferred = node
        .op
        .infer(&InferContext::new(&inputs, node.outputs.len()));
    inferred.is_ok_and(|facts| {
        let mut outputs = node.outputs.iter().zip(&facts);
        outputs.all(|(&v, fact)| match other_float(graph, v, to) {
            Some(_) => fact.dtype == Some(to),
            None => fact.dtype == graph.value(v).fact.dtype,
        })
    })
}

/// A new value like `v` of another type, with its data if `v` is a constant.
fn like(graph: &mut Graph, v: ValueId, dtype: DType) -> Result<ValueId> {
    let value = graph.value(v);
    let fact = Fact {
        dtype: Some(dtype),
        ..value.fact.clone()
    };
    let data = value.constant.as_ref().map(|t| t.in_precision(dtype));
    let name = format!("{}/{dtype}", value.name);
    let twin = graph.add_value(name, fact);
    graph.value_mut(twin).constant = data.transpose()?;
    Ok(twin)
}
