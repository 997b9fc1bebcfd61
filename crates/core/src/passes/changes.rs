//! What rules changed, for whoever wants to see it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::Rule;
use crate::graph::{Graph, Node, NodeSpec};
use crate::ids::BackendId;

/// Sees every rewrite of a graph, and where its nodes go.
pub trait Observer: Send + Sync {
    /// `rule` has rewritten `graph`, whose nodes were `before`.
    fn changed(&self, rule: Rule, before: &[Node], graph: &Graph);

    /// `backend` has a kernel for `node` in a plan that was made; nodes come in the order in which they run. Views and what is
    /// computed while planning have no kernels. Bodies of control flow are graphs of their own, with plans of their own.
    fn given(&self, backend: &BackendId, node: &NodeSpec) {
        let _ = (backend, node);
    }
}

/// A node in a [`Change`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeName {
    pub name: String,
    pub op: String,
}

/// One application of a rule that changed something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub rule: Rule,
    /// The name of the graph: that of the model, or of a body of control flow.
    pub graph: String,
    /// How many nodes the graph had before and after.
    pub nodes: [usize; 2],
    pub removed: Vec<NodeName>,
    pub added: Vec<NodeName>,
    /// Nodes of other attributes or of another operator, which is the one named.
    pub replaced: Vec<NodeName>,
    /// How many nodes only read or write other values.
    pub rewired: usize,
}

/// A list of all changes.
#[derive(Debug, Default)]
pub struct ChangeLog(Mutex<Vec<Change>>);

impl ChangeLog {
    /// The changes so far, in their order.
    pub fn changes(&self) -> Vec<Change> {
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.clone()
    }
}

impl Observer for ChangeLog {
    fn changed(&self, rule: Rule, before: &[Node], graph: &Graph) {
        let change = compare(rule, before, graph);
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.push(change);
    }
}

/// Nodes of one name correspond in their order.
fn compare(rule: Rule, before: &[Node], graph: &Graph) -> Change {
    let mut left: HashMap<&str, Vec<&Node>> = HashMap::new();
    for node in before.iter().rev() {
        left.entry(&node.name).or_default().push(node);
    }
    let mut change = Change {
        rule,
        graph: graph.name.clone(),
        nodes: [before.len(), graph.nodes.len()],
        removed: Vec::new(),
        added: Vec::new(),
        replaced: Vec::new(),
        rewired: 0,
    };
    let named = |node: &Node| NodeName {
        name: node.name.clone(),
        op: node.op.name().to_string(),
    };
    for node in &graph.nodes {
        match left.get_mut(node.name.as_str()).and_then(Vec::pop) {
            None => change.added.push(named(node)),
            Some(old) if !Arc::ptr_eq(&old.op, &node.op) && *old.op != *node.op => {
                change.replaced.push(named(node));
            }
            Some(old) => {
                let rewired = old.inputs != node.inputs || old.outputs != node.outputs;
                change.rewired += usize::from(rewired);
            }
        }
    }
    for node in before {
        let gone = left.get(node.name.as_str());
        if gone.is_some_and(|nodes| nodes.iter().any(|&n| std::ptr::eq(n, node))) {
            change.removed.push(named(node));
        }
    }
    change
}
