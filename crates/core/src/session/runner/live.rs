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
    let constant = |v: ValueId| graph.value(v).constant.is_some();
    let leaves = |v: ValueId, live_out: &mut Vec<Vec<ValueId>>| {
        if let Some(s) = made_in[v.0]
            && !live_out[s].contains(&v)
        {
            live_out[s].push(v);
        }
    };
    for (s, stage) in stages.stages.iter().enumerate() {
        for id in &stage.nodes {
            for v in graph.nodes[id.0].present_inputs() {
                if made_in[v.0] != Some(s) && !constant(v) {
                    if !live_in[s].contains(&v) {
                        live_in[s].push(v);
                    }
                    leaves(v, &mut live_out);
                }
            }
        }
        for id in &stage.control {
            for v in graph.nodes[id.0].present_inputs() {
                leaves(v, &mut live_out);
            }
        }
    }
    for &v in &graph.outputs {
        leaves(v, &mut live_out);
    }
    (live_in, live_out)
}
