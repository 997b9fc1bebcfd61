//! Shape arithmetic on dimensions when only some are known: `Shape → Gather → Concat → Reshape` with a batch
//! that is not known yet still tells all the others.

use crate::dim::Dim;
use crate::graph::{Axes, Graph, InferContext, Node, ValueId};
use crate::ids::IdMap;

/// Longest vector that is followed.
const LONGEST: usize = 64;

/// What is known of small integer values, element by element. Vectors and scalars alike are lists.
#[derive(Default)]
pub struct KnownDims {
    known: IdMap<ValueId, Vec<Dim>>,
}

impl KnownDims {
    /// The elements of `v`; some may be unknown. Negative elements count as unknown.
    pub fn get(&self, graph: &Graph, v: ValueId) -> Option<Vec<Dim>> {
        if let Some(dims) = self.known.get(&v) {
            return Some(dims.clone());
        }
        let tensor = graph.value(v).constant.as_ref()?;
        if tensor.rank() > 1 || tensor.len() > LONGEST || !tensor.dtype().is_integer() {
            return None;
        }
        let dims = tensor.to_i64s().ok()?.into_iter();
        Some(
            dims.map(|n| usize::try_from(n).map_or(Dim::Unknown, Dim::Known))
                .collect(),
        )
    }

    /// Follows one node. Inputs must have been followed before.
    pub fn follow(&mut self, graph: &Graph, node: &Node) {
        let [out] = node.outputs[..] else { return };
        if let Some(dims) = self.compute(graph, node)
            && dims.len() <= LONGEST
        {
            self.known.insert(out, dims);
        }
    }

    fn compute(&self, graph: &Graph, node: &Node) -> Option<Vec<Dim>> {
        let out = graph.fact(node.outputs[0]);
        // A vector of several elements may become a matrix; a list cannot say so.
        if !out.dtype?.is_integer() || out.rank()? > 1 {
            return None;
        }
        let known = |v: &Option<ValueId>| v.and_then(|v| self.get(graph, v));
        let elements: Vec<_> = node.inputs.iter().map(known).collect();
        if node.op.flow().axes == Axes::Regrouped {
            return elements.into_iter().next()?;
        }
        let inputs = graph.input_facts(&node.inputs);
        node.op.elements(&InferContext::new(&inputs, 1), &elements)
    }
}
