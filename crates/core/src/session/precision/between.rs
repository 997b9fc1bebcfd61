//! What only moves elements from one half-precision node to the next.

use crate::dtype::DType;
use crate::graph::{Graph, NodeId, ValueId};
use crate::passes;

/// The nodes that move elements, as `may` allows, and that read nothing but what `chosen` ones, or
/// others like them, give, and give it to nobody else. In half precision they give the same
/// numbers, which are then not widened in front of them and narrowed behind them.
pub fn between(graph: &Graph, chosen: &[NodeId], may: &[NodeId]) -> Vec<NodeId> {
    let mut half = vec![false; graph.nodes.len()];
    chosen.iter().for_each(|id| half[id.0] = true);
    let moves = |id: &NodeId| !half[id.0] && passes::moves(graph, &graph.nodes[id.0]);
    let mut movers: Vec<NodeId> = may.iter().copied().filter(moves).collect();
    let mut moving = vec![false; graph.nodes.len()];
    for id in &movers {
        (half[id.0], moving[id.0]) = (true, true);
    }
    let mut leaves = vec![false; graph.values.len()];
    graph.outputs.iter().for_each(|v| leaves[v.0] = true);
    let mut writer = vec![None; graph.values.len()];
    let mut readers = vec![Vec::new(); graph.values.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        node.outputs.iter().for_each(|v| writer[v.0] = Some(i));
        let planned = node.op.value_inputs();
        for (k, v) in node.inputs.iter().enumerate() {
            // A value that shapes are planned with stays what it is.
            let half = half[i] && !planned.contains(&k);
            v.iter().for_each(|v| readers[v.0].push(half.then_some(i)));
        }
    }
    let is_single = |v: ValueId| graph.value(v).fact.dtype == Some(DType::F32);
    let stays = |id: &NodeId, half: &[bool]| {
        let node = &graph.nodes[id.0];
        let planned = node.op.value_inputs();
        let data = node.inputs.iter().enumerate();
        let mut data =
            data.filter_map(|(k, v)| v.filter(|v| !planned.contains(&k) && is_single(*v)));
        let narrow = |v: ValueId| writer[v.0].is_some_and(|w: usize| half[w]);
        let narrowed = |v: &ValueId| {
            let mut to = readers[v.0].iter();
            !leaves[v.0] && !readers[v.0].is_empty() && to.all(|r| r.is_some_and(|r| half[r]))
        };
        data.all(narrow) && node.outputs.iter().all(narrowed)
    };
    let mut open = movers.clone();
    while let Some(id) = open.pop() {
        if !half[id.0] || stays(&id, &half) {
            continue;
        }
        half[id.0] = false;
        // Those around it may have stayed for its sake.
        let node = &graph.nodes[id.0];
        let before = node.present_inputs().filter_map(|v| writer[v.0]);
        let after = node.outputs.iter().flat_map(|v| &readers[v.0]);
        let around = before.chain(after.copied().flatten());
        open.extend(around.filter(|&i| moving[i]).map(NodeId));
    }
    movers.retain(|id| half[id.0]);
    movers
}
