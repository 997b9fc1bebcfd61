//! The one way in which passes change the nodes of a graph.

#[cfg(debug_assertions)]
mod check;

use crate::error::Result;
use crate::graph::{Graph, Node, Operator, ValueId};
#[cfg(debug_assertions)]
use check::Before;

/// A rewrite of a graph: takes its nodes one by one, in order, and builds a new list of them. Keeps count of the uses of
/// every value; what the node in hand reads is not counted.
///
/// In builds with debug assertions it holds the result against what each rewrite has to leave as it was.
pub struct Patch {
    todo: std::vec::IntoIter<Node>,
    done: Vec<Option<Node>>,
    producer: Vec<Option<usize>>,
    uses: Vec<usize>,
    /// Whether uses and producers are kept.
    counts: bool,
    /// The values that others stand for.
    replaced: Vec<Option<ValueId>>,
    pub changed: bool,
    #[cfg(debug_assertions)]
    before: Before,
}

impl Patch {
    /// Takes all nodes out of `graph`; [`Patch::next_node`] hands them out, and [`Patch::finish`] gives the new ones back.
    pub fn start(graph: &mut Graph) -> Patch {
        let uses = graph.use_counts();
        Patch {
            producer: vec![None; graph.values.len()],
            uses,
            counts: true,
            ..Patch::forward(graph)
        }
    }

    /// Begins as [`Patch::start`] does a rewrite that looks at no other node than the one in hand: no value has uses or a
    /// producer.
    pub fn forward(graph: &mut Graph) -> Patch {
        #[cfg(debug_assertions)]
        let before = Before::of(graph);
        let nodes = std::mem::take(&mut graph.nodes);
        Patch {
            done: Vec::with_capacity(nodes.len()),
            todo: nodes.into_iter(),
            producer: Vec::new(),
            uses: Vec::new(),
            counts: false,
            replaced: Vec::new(),
            changed: false,
            #[cfg(debug_assertions)]
            before,
        }
    }

    /// Says that the element types of values change, those of the graph's outputs too if `of_outputs`.
    pub fn changes_types(&mut self, of_outputs: bool) {
        let _ = of_outputs;
        #[cfg(debug_assertions)]
        self.before.forget_types(of_outputs);
    }

    /// The next node of the graph as it was, with the inputs that now stand for its own. It is gone unless it is put back.
    pub fn next_node(&mut self) -> Option<Node> {
        let mut node = self.todo.next()?;
        self.count(&node, |n| n.saturating_sub(1));
        if !self.replaced.is_empty() {
            for slot in node.inputs.iter_mut().flatten() {
                *slot = self.now(*slot);
            }
        }
        Some(node)
    }

    /// Puts a node at the end of the list.
    pub fn push(&mut self, node: Node) {
        self.count(&node, |n| n + 1);
        for v in node.outputs.iter().filter(|_| self.counts) {
            if self.producer.len() <= v.0 {
                self.producer.resize(v.0 + 1, None);
            }
            self.producer[v.0] = Some(self.done.len());
        }
        self.done.push(Some(node));
    }

    /// Takes the node that writes `v` out of the list, to be put back changed.
    pub fn take(&mut self, v: ValueId) -> Option<Node> {
        let i = self.producer.get_mut(v.0)?.take()?;
        let node = self.done.get_mut(i)?.take()?;
        self.count(&node, |n| n.saturating_sub(1));
        self.changed = true;
        Some(node)
    }

    /// Lets `new` stand for `old` in all nodes from the next one on, and in the outputs of the graph.
    pub fn replace(&mut self, old: ValueId, new: ValueId) {
        if self.replaced.len() <= old.0 {
            self.replaced.resize(old.0 + 1, None);
        }
        self.replaced[old.0] = Some(self.now(new));
    }

    /// What stands for `v` now.
    pub fn now(&self, v: ValueId) -> ValueId {
        let mut v = v;
        // Each step goes to a value that was final when it was set.
        while let Some(Some(to)) = self.replaced.get(v.0) {
            if *to == v {
                break;
            }
            v = *to;
        }
        v
    }

    /// Gives the nodes back to the graph, those that were not asked for last; whether anything was changed.
    ///
    /// # Errors
    /// With debug assertions, `State` where the graph is not what a rewrite has to leave: a value is read before it is
    /// written, nothing writes it, or it is written twice; or one that was there has another element type or shape, or
    /// a node would give it another.
    pub fn finish(self, graph: &mut Graph) -> Result<bool> {
        for i in 0..graph.outputs.len() {
            graph.outputs[i] = self.now(graph.outputs[i]);
        }
        // In the memory of the list itself.
        graph.nodes = self.done.into_iter().flatten().collect();
        graph.nodes.extend(self.todo);
        #[cfg(debug_assertions)]
        self.before.check(graph)?;
        Ok(self.changed)
    }

    fn count(&mut self, node: &Node, change: impl Fn(usize) -> usize) {
        if !self.counts {
            return;
        }
        for v in node.present_inputs() {
            if self.uses.len() <= v.0 {
                self.uses.resize(v.0 + 1, 0);
            }
            self.uses[v.0] = change(self.uses[v.0]);
        }
    }

    /// Readers of `v` besides the node in hand, the outputs of the graph among them.
    pub fn uses(&self, v: ValueId) -> usize {
        self.uses.get(v.0).copied().unwrap_or(0)
    }

    /// The node that writes `v`.
    pub fn producer(&self, v: Option<ValueId>) -> Option<&Node> {
        self.done.get(self.position(v?)?)?.as_ref()
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
}

/// A graph to go back to where a rewrite was not worth it.
pub struct Snapshot {
    nodes: Vec<Node>,
    outputs: Vec<ValueId>,
    values: usize,
}

impl Snapshot {
    /// The nodes and outputs of `graph` as they are.
    pub fn of(graph: &Graph) -> Snapshot {
        Snapshot {
            nodes: graph.nodes.clone(),
            outputs: graph.outputs.clone(),
            values: graph.values.len(),
        }
    }

    /// Gives `graph` its nodes and outputs back, and takes the values away that came since.
    pub fn restore(self, graph: &mut Graph) {
        (graph.nodes, graph.outputs) = (self.nodes, self.outputs);
        graph.values.truncate(self.values);
    }
}
