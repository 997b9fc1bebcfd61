//! Which order the readers of a value would like it in.

use super::as_transpose;
use super::sink::maps;
use crate::graph::{Axes, Elements, Graph, Node, ValueId};

/// Wishes, gathered from the outputs upwards.
pub struct Demand {
    /// The transpose that a reader applies, directly or after operators that keep the dimensions.
    wish: Vec<Option<Vec<usize>>>,
    /// Values that some reader needs exactly as they are.
    blocked: Vec<bool>,
}

impl Demand {
    /// The wishes of all readers.
    pub fn of(graph: &Graph) -> Demand {
        let mut wish: Vec<Option<Vec<usize>>> = vec![None; graph.values.len()];
        let mut blocked = vec![false; graph.values.len()];
        for v in &graph.outputs {
            blocked[v.0] = true;
        }
        for node in graph.nodes.iter().rev() {
            if let Some(op) = as_transpose(node) {
                if let Some(x) = node.input(0) {
                    wish[x.0] = Some(op.perm.clone());
                }
                continue;
            }
            let keeps = keeps_dimensions(graph, node);
            let out = node.outputs.iter().find_map(|v| wish[v.0].clone());
            for (i, v) in node.inputs.iter().enumerate() {
                let Some(v) = v else { continue };
                let renumbered = i == 0 && renumbers(node);
                if !keeps && !renumbered {
                    blocked[v.0] = true;
                } else if let Some(perm) = &out
                    && wish[v.0].is_none()
                    && keeps
                    && graph.fact(*v).rank() == Some(perm.len())
                {
                    wish[v.0] = Some(perm.clone());
                }
            }
        }
        Demand { wish, blocked }
    }

    /// The permutation that readers of `v` would like it in.
    pub fn of_value(&self, v: ValueId) -> Option<&Vec<usize>> {
        self.wish.get(v.0)?.as_ref()
    }

    /// Whether some reader needs `v` as it is.
    pub fn is_blocked(&self, v: ValueId) -> bool {
        self.blocked.get(v.0) == Some(&true)
    }
}

/// True where the outputs have the dimensions of the inputs, one by one.
fn keeps_dimensions(graph: &Graph, node: &Node) -> bool {
    let flow = node.op.flow();
    let along_axis = flow.elements == Elements::MappedAlongAxis && !maps(graph, node);
    flow.axes == Axes::Kept && !along_axis
}

/// True where the first input may lie in another order although the dimensions do not correspond.
fn renumbers(node: &Node) -> bool {
    matches!(node.op.flow().axes, Axes::Regrouped | Axes::Removed)
}
