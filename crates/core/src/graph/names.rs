//! What a node and its tensors are called.

use super::{Graph, Node, ValueId};

/// The names of a node and of its tensors, without a copy of them; empty where the node is not one of a graph.
#[derive(Clone, Copy, Default)]
pub struct Names<'a>(Option<(&'a Graph, &'a Node)>);

impl<'a> Names<'a> {
    /// The names of a node whose values are those of `graph`.
    pub fn of(graph: &'a Graph, node: &'a Node) -> Names<'a> {
        Names(Some((graph, node)))
    }

    /// The name of the node.
    pub fn node(&self) -> &'a str {
        self.0.map_or("", |(_, node)| &node.name)
    }

    /// The name of input `i`; empty where it is left out.
    pub fn input(&self, i: usize) -> &'a str {
        self.value(|node| node.input(i))
    }

    /// The name of output `i`.
    pub fn output(&self, i: usize) -> &'a str {
        self.value(|node| node.outputs.get(i).copied())
    }

    fn value(&self, of: impl Fn(&Node) -> Option<ValueId>) -> &'a str {
        let name = self.0.and_then(|(graph, node)| {
            let value = graph.values.get(of(node)?.0)?;
            Some(value.name.as_str())
        });
        name.unwrap_or_default()
    }
}
