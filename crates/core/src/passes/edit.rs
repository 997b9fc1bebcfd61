//! What the passes share: renaming values, reading constants, rebuilding the list of nodes.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Graph, Node, Operator, ValueId};
use crate::tensor::Tensor;

/// Values that others take the place of. Applied to all uses at once.
#[derive(Default)]
pub struct Renames {
    to: Vec<Option<ValueId>>,
}

impl Renames {
    /// Lets `new` stand for `old` from here on.
    pub fn set(&mut self, old: ValueId, new: ValueId) {
        if self.to.len() <= old.0 {
            self.to.resize(old.0 + 1, None);
        }
        self.to[old.0] = Some(self.get(new));
    }

    /// What stands for `v` now.
    pub fn get(&self, v: ValueId) -> ValueId {
        let mut v = v;
        // Each step goes to a value that was final when the renaming was set.
        while let Some(Some(to)) = self.to.get(v.0) {
            if *to == v {
                break;
            }
            v = *to;
        }
        v
    }

    /// Renames the inputs of a node.
    pub fn apply(&self, node: &mut Node) {
        for slot in node.inputs.iter_mut().flatten() {
            *slot = self.get(*slot);
        }
    }

    /// Renames the outputs of the graph; true where there was any renaming at all.
    pub fn finish(self, graph: &mut Graph) -> bool {
        for out in &mut graph.outputs {
            *out = self.get(*out);
        }
        !self.to.is_empty()
    }
}

/// Rebuilds the list of nodes in order, one node in hand at a time, and keeps count of the uses of
/// every value. What the node in hand reads is not counted.
pub struct Rewriter {
    done: Vec<Option<Node>>,
    producer: Vec<Option<usize>>,
    uses: Vec<usize>,
    pub changed: bool,
}

impl Rewriter {
    /// Takes all nodes out of `graph`; hand them to [`Rewriter::take_up`] one by one.
    pub fn start(graph: &mut Graph) -> (Rewriter, Vec<Node>) {
        let rewriter = Rewriter {
            done: Vec::with_capacity(graph.nodes.len()),
            producer: vec![None; graph.values.len()],
            uses: graph.use_counts(),
            changed: false,
        };
        (rewriter, std::mem::take(&mut graph.nodes))
    }

    /// Gives the nodes back to the graph; whether anything was changed.
    pub fn finish(self, graph: &mut Graph) -> bool {
        graph.nodes = self.done.into_iter().flatten().collect();
        self.changed
    }

    fn count(&mut self, node: &Node, change: impl Fn(usize) -> usize) {
        for v in node.present_inputs() {
            if self.uses.len() <= v.0 {
                self.uses.resize(v.0 + 1, 0);
            }
            self.uses[v.0] = change(self.uses[v.0]);
        }
    }

    /// Counts what a node reads as one use less: it is about to be put back or replaced.
    pub fn take_up(&mut self, node: &Node) {
        self.count(node, |n| n.saturating_sub(1));
    }

    /// Puts a node at the end of the list.
    pub fn push(&mut self, node: Node) {
        self.count(&node, |n| n + 1);
        for v in &node.outputs {
            if self.producer.len() <= v.0 {
                self.producer.resize(v.0 + 1, None);
            }
            self.producer[v.0] = Some(self.done.len());
        }
        self.done.push(Some(node));
    }

    /// Readers of `v` besides the node in hand, the outputs of the graph among them.
    pub fn uses(&self, v: ValueId) -> usize {
        self.uses.get(v.0).copied().unwrap_or(0)
    }

    /// The node that writes `v`.
    pub fn producer(&self, v: Option<ValueId>) -> Option<&Node> {
        let i = self.producer.get(v?.0).copied().flatten()?;
        self.done.get(i)?.as_ref()
    }

    /// The operator that writes `v`, if it is a `T`, with its node.
    pub fn produced_by<T: Operator>(&self, v: Option<ValueId>) -> Option<(&T, &Node)> {
        let node = self.producer(v)?;
        Some((node.op.downcast_ref()?, node))
    }

    /// The place of the node that writes `v`, for the order of two.
    pub fn position(&self, v: ValueId) -> Option<usize> {
        self.producer.get(v.0).copied().flatten()
    }

    /// Takes the node that writes `v` out of the list, to be put back changed.
    pub fn take(&mut self, v: ValueId) -> Option<Node> {
        let i = self.producer.get_mut(v.0)?.take()?;
        let node = self.done.get_mut(i)?.take()?;
        self.take_up(&node);
        self.changed = true;
        Some(node)
    }
}

/// A node with one output.
pub fn node(name: &str, op: impl Operator, inputs: Vec<Option<ValueId>>, output: ValueId) -> Node {
    Node {
        name: name.to_string(),
        op: Arc::new(op),
        inputs,
        outputs: vec![output],
    }
}

impl Graph {
    pub(super) fn constant(&self, v: Option<ValueId>) -> Option<&Tensor> {
        v.and_then(|v| self.value(v).constant.as_ref())
    }

    pub(super) fn fact(&self, v: ValueId) -> &Fact {
        &self.value(v).fact
    }

    pub(super) fn is_f32(&self, v: ValueId) -> bool {
        self.value(v).fact.dtype == Some(DType::F32)
    }

    /// The constant of one element that `v` is.
    pub(super) fn scalar(&self, v: Option<ValueId>) -> Option<f64> {
        let tensor = self.constant(v)?;
        if tensor.len() != 1 {
            return None;
        }
        tensor.to_f64s().ok()?.first().copied()
    }

    /// The integers of a constant.
    pub(super) fn ints(&self, v: Option<ValueId>) -> Option<Vec<i64>> {
        self.constant(v)?.to_i64s().ok()
    }

    /// A new `int64` vector.
    pub(super) fn add_ints(&mut self, name: String, ints: &[i64]) -> Result<ValueId> {
        Ok(self.add_constant(name, Tensor::from_slice(&[ints.len()], ints)?))
    }
}

/// The inverse of a permutation.
pub fn inverse(perm: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; perm.len()];
    for (i, &p) in perm.iter().enumerate() {
        inverse[p] = i;
    }
    inverse
}

/// True where `perm` leaves everything in its place.
pub fn is_identity(perm: &[usize]) -> bool {
    perm.iter().enumerate().all(|(i, &p)| i == p)
}
