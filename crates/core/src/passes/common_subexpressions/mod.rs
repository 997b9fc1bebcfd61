//! Computes what is computed twice once.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;
use std::sync::Arc;

use super::known_dims::KnownDims;
use super::patch::Patch;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Operator, Value, ValueId};
use crate::reflect::Contents;
use crate::tensor::Tensor;

/// Constants larger than this are not compared: that would read all weights of a model. Smaller ones are hashed
/// whole, so that different ones are rarely compared.
const COMPARED_BYTES: usize = Contents::HASHED;

/// The most operators with one hash that a node is compared with: what passes do stays linear in the size of
/// the graph.
const COMPARED_OPERATORS: usize = 8;

/// What a node computes, whatever of, and its outputs.
type Work = (Arc<dyn Operator>, Vec<ValueId>);

/// The nodes that read the same values. Most are alone, so that their operators need not be hashed.
#[derive(Default)]
struct Readers {
    alone: Option<Work>,
    /// Nodes by the hash of the operator.
    several: HashMap<u64, Vec<Work>>,
}

impl Readers {
    /// The outputs of an earlier node that computes the same as `node`, which is noted where there is none.
    fn equal_to(&mut self, node: &Node, hasher: &RandomState) -> Option<&[ValueId]> {
        let work = (node.op.clone(), node.outputs.clone());
        if self.alone.is_none() && self.several.is_empty() {
            self.alone = Some(work);
            return None;
        }
        if let Some(first) = self.alone.take() {
            let hash = hasher.hash_one(&first.0);
            self.several.insert(hash, vec![first]);
        }
        let alike = self.several.entry(hasher.hash_one(&work.0)).or_default();
        let same = |(op, outputs): &Work| outputs.len() == work.1.len() && **op == *work.0;
        if let Some(i) = alike.iter().position(same) {
            return Some(&alike[i].1);
        }
        if alike.len() < COMPARED_OPERATORS {
            alike.push(work);
        }
        None
    }
}

/// Whether a constant is small enough to be compared.
fn is_small(tensor: &Tensor) -> bool {
    match tensor.texts() {
        Ok(texts) if texts.len() <= COMPARED_BYTES => {
            texts.iter().map(|t| t.len()).sum::<usize>() <= COMPARED_BYTES
        }
        Ok(_) => false,
        Err(_) => tensor.byte_len() <= COMPARED_BYTES,
    }
}

/// Lets the first of equal small constants stand for the others.
fn equal_constants(values: &[Value], patch: &mut Patch) {
    let mut seen: HashMap<Contents, ValueId> = HashMap::new();
    for (i, value) in values.iter().enumerate() {
        let Some(tensor) = value.constant.as_ref().filter(|t| is_small(t)) else {
            continue;
        };
        match seen.entry(Contents(tensor)) {
            Entry::Occupied(first) => patch.replace(ValueId(i), *first.get()),
            Entry::Vacant(slot) => {
                slot.insert(ValueId(i));
            }
        }
    }
}

/// The integers that hold the same dimensions of inputs, however they were computed.
struct Dims {
    known: KnownDims,
    /// How many dimensions of inputs have a name. One name may stand for lengths that differ (`session::builtin::ports`), unless
    /// there is only one.
    named: HashMap<Arc<str>, usize>,
    first: HashMap<(DType, usize, Vec<Dim>), ValueId>,
}

impl Dims {
    fn new(graph: &Graph) -> Dims {
        let shapes = graph.inputs.iter().map(|&v| &graph.fact(v).shape);
        let mut named = HashMap::new();
        for symbol in shapes
            .flatten()
            .flat_map(|s| &s.0)
            .flat_map(|d| d.symbols())
        {
            *named.entry(symbol.clone()).or_default() += 1;
        }
        Dims {
            known: KnownDims::default(),
            named,
            first: HashMap::new(),
        }
    }

    /// Follows a node. An earlier value that holds the same dimensions as the node's only output, which is noted where there is none.
    fn equal_to(&mut self, graph: &Graph, node: &Node) -> Option<ValueId> {
        self.known.follow(graph, node);
        let [out] = node.outputs[..] else { return None };
        let dims = self.known.get(graph, out)?;
        let fact = graph.fact(out);
        let mut names = dims.iter().flat_map(|d| d.symbols()).peekable();
        let open = names.peek().is_none() || dims.contains(&Dim::Unknown);
        if open || names.any(|name| self.named.get(name) != Some(&1)) {
            return None;
        }
        let key = (fact.dtype?, fact.rank()?, dims);
        match self.first.entry(key) {
            Entry::Occupied(first) => Some(*first.get()),
            Entry::Vacant(slot) => {
                slot.insert(out);
                None
            }
        }
    }
}

/// Lets equal small constants, equal nodes (same operator, attributes and inputs, in any order where that does not
/// matter) and nodes that compute the same dimensions stand for each other. True where a node went.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn run(graph: &mut Graph) -> Result<bool> {
    let mut patch = Patch::forward(graph);
    equal_constants(&graph.values, &mut patch);
    let hasher = RandomState::new();
    let mut seen: HashMap<Vec<Option<ValueId>>, Readers> = HashMap::new();
    let mut dims = Dims::new(graph);
    while let Some(node) = patch.next_node() {
        if let Some(earlier) = dims.equal_to(graph, &node) {
            patch.replace(node.outputs[0], earlier);
            patch.changed = true;
            continue;
        }
        if node.op.deterministic() && node.op.bodies().is_none() {
            let mut inputs = node.inputs.clone();
            if let ([a, b], true) = (&mut inputs[..], node.op.flow().commutes())
                && b < a
            {
                std::mem::swap(a, b);
            }
            let readers = seen.entry(inputs).or_default();
            if let Some(earlier) = readers.equal_to(&node, &hasher) {
                for (&old, &new) in node.outputs.iter().zip(earlier) {
                    patch.replace(old, new);
                }
                patch.changed = true;
                continue;
            }
        }
        patch.push(node);
    }
    patch.finish(graph)
}

#[cfg(test)]
mod tests;
