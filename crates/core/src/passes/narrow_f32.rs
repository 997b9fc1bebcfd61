//! Half precision for chosen nodes.

use std::collections::HashMap;

use super::edit::node;
use super::{dead_code, infer_graph};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, NodeId, ValueId};
use crate::ops::Cast;
use crate::tensor::Tensor;

/// Has `chosen` compute in `f16` what they compute in `f32`: what they read is cast, constants here
/// and now, and what they write is cast back for whoever is not chosen. Needs inferred facts.
///
/// # Errors
/// What shape inference says of the result.
pub fn run(graph: &mut Graph, chosen: &[NodeId]) -> Result<()> {
    let mut twins: HashMap<ValueId, ValueId> = HashMap::new();
    let old = std::mem::take(&mut graph.nodes);
    let mut nodes = Vec::with_capacity(old.len());
    for (i, mut n) in old.into_iter().enumerate() {
        if !chosen.contains(&NodeId(i)) {
            nodes.push(n);
            continue;
        }
        let read_by_planning = n.op.value_inputs();
        for (k, slot) in n.inputs.iter_mut().enumerate() {
            let Some(slot) = slot else { continue };
            let v = *slot;
            if read_by_planning.contains(&k) || !is_single(graph, v) {
                continue;
            }
            if let Some(twin) = twins.get(&v) {
                *slot = *twin;
                continue;
            }
            let twin = half_like(graph, v)?;
            if graph.value(twin).constant.is_none() {
                let name = graph.value(twin).name.clone();
                nodes.push(node(&name, Cast::new(DType::F16), vec![Some(v)], twin));
            }
            twins.insert(v, twin);
            *slot = twin;
        }
        let mut back = Vec::new();
        for out in &mut n.outputs {
            let v = *out;
            if is_single(graph, v) {
                let twin = half_like(graph, v)?;
                let name = format!("{}/single", graph.value(v).name);
                back.push(node(&name, Cast::new(DType::F32), vec![Some(twin)], v));
                twins.insert(v, twin);
                *out = twin;
            }
        }
        nodes.push(n);
        nodes.extend(back);
    }
    graph.nodes = nodes;
    dead_code::run(graph);
    infer_graph(graph)
}

fn is_single(graph: &Graph, v: ValueId) -> bool {
    graph.value(v).fact.dtype == Some(DType::F32)
}

/// A new value like `v`, in half precision, with its data if `v` is a constant.
fn half_like(graph: &mut Graph, v: ValueId) -> Result<ValueId> {
    let mut fact = graph.value(v).fact.clone();
    fact.dtype = Some(DType::F16);
    let data = match &graph.value(v).constant {
        Some(t) => {
            let rounded: Vec<half::f16> = t
                .as_slice::<f32>()?
                .iter()
                .map(|&x| half::f16::from_f32(x))
                .collect();
            Some(Tensor::from_slice(t.shape(), &rounded)?)
        }
        None => None,
    };
    let name = format!("{}/half", graph.value(v).name);
    let twin = graph.add_value(name, fact);
    graph.value_mut(twin).constant = data;
    Ok(twin)
}
