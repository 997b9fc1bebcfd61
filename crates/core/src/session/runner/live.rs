//! What passes between stages.

use crate::graph::{Graph, ValueId};
use crate::stages::Stages;

/// For each stage, what it reads that others made, and what of it others read.
pub fn between(graph: &Graph, stages: &Stages) -> (Vec<Vec<ValueId>>, Vec<Vec<ValueId>>) {
    let count = stages.stages.len();
    let mut made_in = vec![None; graph.values.len()];
    for (s, stage) in stages.stages.iter().enumerate() {
        for id in &stage.nodes {
            for out in &graph.nodes[id.0].outputs {
                made_in[out.0] = Some(s);
            }
        }
    }
    let mut live_in = vec![Vec::new(); count];
    let mut live_out = vec![Vec::new(); count];
    // Stages are looked at one after the other: the last that reads a value is all there is to know.
    let mut read_in = vec![None; graph.values.len()];
    let mut left = vec![false; graph.values.len()];
    let constant = |v: ValueId| graph.value(v).constant.is_some();
    let mut leaves = |v: ValueId| {
        if let Some(s) = made_in[v.0]
            && !std::mem::replace(&mut left[v.0], true)
        {
            live_out[s].push(v);
        }
    };
    for (s, stage) in stages.stages.iter().enumerate() {
        for id in &stage.nodes {
            for v in graph.nodes[id.0].present_inputs() {
                if made_in[v.0] != Some(s) && !constant(v) {
                    if read_in[v.0].replace(s) != Some(s) {
                        live_in[s].push(v);
                    }
                    leaves(v);
                }
            }
        }
        for id in &stage.control {
            graph.nodes[id.0].present_inputs().for_each(&mut leaves);
        }
    }
    graph.outputs.iter().copied().for_each(leaves);
    (live_in, live_out)
}

/// For each stage, what of the values that it reads, `live_in`, nobody reads behind it.
pub fn spent(graph: &Graph, stages: &Stages, live_in: &[Vec<ValueId>]) -> Vec<Vec<ValueId>> {
    let mut read_later = vec![false; graph.values.len()];
    graph.outputs.iter().for_each(|v| read_later[v.0] = true);
    let mut spent = vec![Vec::new(); live_in.len()];
    for (s, read) in live_in.iter().enumerate().rev() {
        for id in &stages.stages[s].control {
            let read = graph.nodes[id.0].present_inputs();
            read.for_each(|v| read_later[v.0] = true);
        }
        for &v in read {
            if !std::mem::replace(&mut read_later[v.0], true) {
                spent[s].push(v);
            }
        }
    }
    spent
}
