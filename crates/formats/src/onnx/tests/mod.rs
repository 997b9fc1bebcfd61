//! What the importer makes of small models.

mod attention;
mod bodies;
mod draft;
mod garbage;
mod metadata;
mod microsoft;
mod structure;
mod tensors;
mod upgrades;
mod writer;

use kilim_core::graph::{Graph, ValueId};

fn names(graph: &Graph, ids: &[ValueId]) -> Vec<String> {
    ids.iter().map(|&v| graph.value(v).name.clone()).collect()
}
