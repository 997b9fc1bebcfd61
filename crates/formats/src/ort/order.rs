//! The order of nodes. An ORT file has them by the numbers that they got when the model was optimised, not in the order in
//! which they run.

use std::collections::{BTreeSet, HashMap};

use crate::onnx::proto::NodeProto;

/// Brings nodes, each with what its bodies use from outside, into an order in which values are written before they are read.
/// Those of a circle come last, as they stand.
pub fn in_order<'a>(nodes: Vec<(NodeProto<'a>, Vec<&'a str>)>) -> Vec<NodeProto<'a>> {
    let mut writer = HashMap::new();
    for (i, (node, _)) in nodes.iter().enumerate() {
        writer.extend(node.outputs.iter().map(|&name| (name, i)));
    }
    writer.remove("");
    let mut readers = vec![Vec::new(); nodes.len()];
    let mut waiting = vec![0usize; nodes.len()];
    for (i, (node, captured)) in nodes.iter().enumerate() {
        for name in node.inputs.iter().chain(captured) {
            if let Some(&w) = writer.get(name) {
                readers[w].push(i);
                waiting[i] += 1;
            }
        }
    }
    let mut ready: BTreeSet<usize> = (0..nodes.len()).filter(|&i| waiting[i] == 0).collect();
    let mut nodes: Vec<_> = nodes.into_iter().map(|(node, _)| Some(node)).collect();
    let mut ordered = Vec::with_capacity(nodes.len());
    while let Some(i) = ready.pop_first() {
        ordered.extend(nodes[i].take());
        for &reader in &readers[i] {
            waiting[reader] -= 1;
            if waiting[reader] == 0 {
                ready.insert(reader);
            }
        }
    }
    ordered.extend(nodes.into_iter().flatten());
    ordered
}
