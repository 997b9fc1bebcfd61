//! Computes what is computed twice once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::edit::Renames;
use crate::dtype::DType;
use crate::graph::{Graph, ValueId};

/// Constants larger than this are not compared.
const COMPARED_BYTES: usize = 256;

/// Lets equal small constants and equal nodes (same operator, attributes and inputs) stand for each
/// other. True where a node went.
pub fn run(graph: &mut Graph) -> bool {
    let mut renames = Renames::default();
    let mut constants: HashMap<(DType, Vec<usize>, Vec<u8>), ValueId> = HashMap::new();
    for (i, value) in graph.values.iter().enumerate() {
        let Some(tensor) = &value.constant else {
            continue;
        };
        if tensor.bytes().len() > COMPARED_BYTES {
            continue;
        }
        let key = (
            tensor.dtype(),
            tensor.shape().to_vec(),
            tensor.bytes().to_vec(),
        );
        match constants.entry(key) {
            Entry::Occupied(first) => renames.set(ValueId(i), *first.get()),
            Entry::Vacant(slot) => {
                slot.insert(ValueId(i));
            }
        }
    }
    let mut seen: HashMap<(String, Vec<Option<ValueId>>), usize> = HashMap::new();
    let mut keep = vec![true; graph.nodes.len()];
    for i in 0..graph.nodes.len() {
        let node = &mut graph.nodes[i];
        renames.apply(node);
        if !node.op.deterministic() || !node.op.subgraphs().is_empty() {
            continue;
        }
        match seen.entry((format!("{:?}", node.op), node.inputs.clone())) {
            Entry::Occupied(first) => {
                let first = *first.get();
                if graph.nodes[first].outputs.len() == graph.nodes[i].outputs.len() {
                    for (&a, &b) in graph.nodes[first]
                        .outputs
                        .iter()
                        .zip(&graph.nodes[i].outputs)
                    {
                        renames.set(b, a);
                    }
                    keep[i] = false;
                }
            }
            Entry::Vacant(slot) => {
                slot.insert(i);
            }
        }
    }
    let changed = keep.contains(&false);
    let mut keep = keep.into_iter();
    graph.nodes.retain(|_| keep.next().unwrap_or(true));
    renames.finish(graph);
    changed
}
