//! Computes what is computed twice once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::edit::Renames;
use crate::dtype::DType;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::Operator;

/// Constants larger than this are not compared.
const COMPARED_BYTES: usize = 256;

/// The nodes of some inputs. Most are alone, and their attributes need not be spelled out.
#[derive(Default)]
struct Readers {
    alone: Option<(Arc<dyn Operator>, Vec<ValueId>)>,
    /// By operator and attributes.
    spelled: HashMap<String, Vec<ValueId>>,
}

impl Readers {
    /// The outputs of a node that computes the same; else `node` is the first of its kind.
    fn equal_to(&mut self, node: &Node) -> Option<&Vec<ValueId>> {
        if self.alone.is_none() && self.spelled.is_empty() {
            self.alone = Some((node.op.clone(), node.outputs.clone()));
            return None;
        }
        if let Some((op, outputs)) = self.alone.take() {
            self.spelled.insert(format!("{op:?}"), outputs);
        }
        match self.spelled.entry(format!("{:?}", node.op)) {
            Entry::Occupied(other) => {
                Some(&*other.into_mut()).filter(|o| o.len() == node.outputs.len())
            }
            Entry::Vacant(slot) => {
                slot.insert(node.outputs.clone());
                None
            }
        }
    }
}

/// Lets equal small constants and equal nodes (same operator, attributes and inputs) stand for each
/// other. True where a node went.
pub fn run(graph: &mut Graph) -> bool {
    let mut renames = Renames::default();
    let mut constants: HashMap<(DType, Vec<usize>, Vec<u8>), ValueId> = HashMap::new();
    for (i, value) in graph.values.iter().enumerate() {
        let Some(tensor) = &value.constant else {
            continue;
        };
        if tensor.byte_len() > COMPARED_BYTES || tensor.dtype() == DType::String {
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
    let mut seen: HashMap<Vec<Option<ValueId>>, Readers> = HashMap::new();
    let mut keep = Vec::with_capacity(graph.nodes.len());
    for node in &mut graph.nodes {
        renames.apply(node);
        let mut first = true;
        if node.op.deterministic() && node.op.subgraphs().is_empty() {
            let readers = seen.entry(node.inputs.clone()).or_default();
            if let Some(other) = readers.equal_to(node) {
                for (&old, &new) in node.outputs.iter().zip(other) {
                    renames.set(old, new);
                }
                first = false;
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
