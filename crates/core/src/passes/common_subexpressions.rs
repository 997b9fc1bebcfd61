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
        if tensor.bytes().len() > COMPARED_BYTES || tensor.dtype() == DType::String {
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
    let mut seen: HashMap<(String, Vec<Option<ValueId>>), Vec<ValueId>> = HashMap::new();
    let mut keep = Vec::with_capacity(graph.nodes.len());
    for node in &mut graph.nodes {
        renames.apply(node);
        let mut first = true;
        if node.op.deterministic() && node.op.subgraphs().is_empty() {
            match seen.entry((format!("{:?}", node.op), node.inputs.clone())) {
                Entry::Occupied(other) if other.get().len() == node.outputs.len() => {
                    for (&old, &new) in node.outputs.iter().zip(other.get()) {
                        renames.set(old, new);
                    }
                    first = false;
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(slot) => {
                    slot.insert(node.outputs.clone());
                }
            }
        }
        keep.push(first);
    }
    let changed = keep.contains(&false);
    let mut keep = keep.into_iter();
    graph.nodes.retain(|_| keep.next().unwrap_or(true));
    renames.finish(graph);
    changed
}
