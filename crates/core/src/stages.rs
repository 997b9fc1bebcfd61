//! Splits a graph into stages. Inside a stage all shapes are known before it runs, so that it can
//! be planned whole; a stage ends where a shape depends on data, and at what `builtin` runs.

use crate::builtin;
use crate::error::Result;
use crate::graph::{Graph, NodeId, ValueId};

/// The nodes of one stage.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Ordinary nodes, in order.
    pub nodes: Vec<NodeId>,
    /// Nodes that `builtin` runs after the ordinary ones, in order.
    pub control: Vec<NodeId>,
    /// Values that must be on the host, with their contents, before the stage is planned.
    pub materialise: Vec<ValueId>,
}

/// The stages of a graph, and when the contents of values become known.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    pub stages: Vec<Stage>,
    /// For each value, the stage from whose planning on its contents are known without running a
    /// kernel; `None` where a backend computes them.
    pub known: Vec<Option<usize>>,
    /// Values whose contents planning needs, directly or through other values.
    pub wanted: Vec<bool>,
}

/// Assigns every node to the first stage in which everything that planning it needs is known.
pub fn split(graph: &Graph) -> Result<Stages> {
    let mut level = vec![0usize; graph.values.len()];
    // The stage after whose ordinary nodes control flow may read a value.
    let mut early = level.clone();
    let mut known: Vec<Option<usize>> = graph
        .values
        .iter()
        .map(|v| v.constant.is_some().then_some(0))
        .collect();
    let mut stages: Vec<Stage> = vec![Stage::default()];
    let grow = |stages: &mut Vec<Stage>, to: usize| {
        while stages.len() <= to {
            stages.push(Stage::default());
        }
    };
    for (i, node) in graph.nodes.iter().enumerate() {
        let id = NodeId(i);
        let latest = |of: &[usize]| node.present_inputs().map(|v| of[v.0]).max().unwrap_or(0);
        if builtin::runs(graph, node) {
            let base = latest(&early);
            grow(&mut stages, base);
            stages[base].control.push(id);
            for out in &node.outputs {
                level[out.0] = base + 1;
                early[out.0] = base;
            }
            continue;
        }
        let mut base = latest(&level);
        for &v in node.op.value_inputs() {
            let Some(v) = node.input(v) else { continue };
            let from = match known[v.0] {
                Some(from) => from,
                None => {
                    let from = level[v.0] + 1;
                    grow(&mut stages, from);
                    stages[from].materialise.push(v);
                    known[v.0] = Some(from);
                    from
                }
            };
            base = base.max(from);
        }
        grow(&mut stages, base);
        stages[base].nodes.push(id);
        let from = if node.op.flow().measures() {
            Some(base)
        } else if node.op.deterministic() {
            node.present_inputs()
                .all(|v| known[v.0].is_some_and(|k| k <= base))
                .then_some(base)
        } else {
            None
        };
        for out in &node.outputs {
            level[out.0] = base;
            early[out.0] = base;
            known[out.0] = from;
        }
    }
    let wanted = wanted(graph, &known);
    Ok(Stages {
        stages,
        known,
        wanted,
    })
}

fn wanted(graph: &Graph, known: &[Option<usize>]) -> Vec<bool> {
    let mut wanted = vec![false; graph.values.len()];
    for node in graph.nodes.iter().rev() {
        for &v in node.op.value_inputs() {
            if let Some(v) = node.input(v) {
                wanted[v.0] = true;
            }
        }
        let needed = node
            .outputs
            .iter()
            .any(|o| wanted[o.0] && known[o.0].is_some());
        if needed && !node.op.flow().measures() {
            for v in node.present_inputs() {
                if known[v.0].is_some() {
                    wanted[v.0] = true;
                }
            }
        }
    }
    wanted
}
