//! The inputs and outputs of a model.

use std::collections::HashMap;

use super::layouts::PortLayout;
use crate::fact::Fact;
use crate::graph::{Graph, ValueId};

/// Layouts of the user's, by the names of inputs and outputs.
pub type PortLayouts = HashMap<String, PortLayout>;

/// An input or output of a model.
#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub fact: Fact,
}

impl Port {
    /// The ports of a graph's inputs or outputs.
    pub fn all(graph: &Graph, ids: &[ValueId]) -> Vec<Port> {
        let port = |&v: &ValueId| Port {
            name: graph.value(v).name.clone(),
            fact: graph.value(v).fact.clone(),
        };
        ids.iter().map(port).collect()
    }
}
