//! A graph while nodes are added to it.

use kilim_core::graph::{Graph, ValueId};
use kilim_core::ids::IdMap;

/// The node of a frame that is being read: the frame, and how many nodes the graph had before it.
pub type Mark = (usize, usize);

/// A graph with what naming its values needs to know of them.
pub struct OpenGraph {
    pub graph: Graph,
    /// The index of the node that writes each value, for the first `indexed` nodes.
    writers: IdMap<ValueId, usize>,
    indexed: usize,
    /// The node that was being read when a value got its name.
    named: IdMap<ValueId, Mark>,
}

impl OpenGraph {
    pub fn new(graph: Graph) -> OpenGraph {
        OpenGraph {
            graph,
            writers: IdMap::default(),
            indexed: 0,
            named: IdMap::default(),
        }
    }

    /// Whether a node from the index in `mark` on writes `value`, which has got no name since. From then
    /// on it has one.
    pub fn take_name(&mut self, value: ValueId, mark: Mark) -> bool {
        for (i, node) in self.graph.nodes.iter().enumerate().skip(self.indexed) {
            self.writers.extend(node.outputs.iter().map(|&v| (v, i)));
        }
        self.indexed = self.graph.nodes.len();
        let fresh = self.writers.get(&value).is_some_and(|&w| w >= mark.1);
        fresh && self.named.insert(value, mark) != Some(mark)
    }
}
