//! What the nodes of a run read and wrote.

use std::collections::HashSet;
use std::sync::Arc;

use crate::graph::{Node, NodeId, Operator};
use crate::tensor::Tensor;

/// One node of a recorded run.
#[derive(Clone, Debug)]
pub struct NodeRecord {
    pub name: String,
    /// The control-flow nodes whose bodies hold it, outermost first.
    pub scope: Vec<String>,
    /// The index in the graph that holds the node.
    pub node: NodeId,
    pub op: Arc<dyn Operator>,
    pub inputs: Vec<Option<RecordedInput>>,
    pub outputs: Vec<Tensor>,
}

/// What a node read.
#[derive(Clone, Debug)]
pub struct RecordedInput {
    pub tensor: Tensor,
    /// A constant of the graph, as weights are.
    pub constant: bool,
}

/// Collects the records of one run.
#[derive(Default)]
pub(crate) struct Recorder {
    pub scope: Vec<String>,
    pub records: Vec<NodeRecord>,
    /// The nodes in `records`, by runner and node.
    seen: HashSet<(u64, NodeId)>,
}

impl Recorder {
    /// Whether the node runs for the first time.
    pub fn is_new(&mut self, runner: u64, node: NodeId) -> bool {
        self.seen.insert((runner, node))
    }

    /// Keeps what a node read and wrote.
    pub fn push(
        &mut self,
        id: NodeId,
        node: &Node,
        inputs: Vec<Option<RecordedInput>>,
        outputs: Vec<Tensor>,
    ) {
        self.records.push(NodeRecord {
            name: node.name.clone(),
            scope: self.scope.clone(),
            node: id,
            op: node.op.clone(),
            inputs,
            outputs,
        });
    }
}
