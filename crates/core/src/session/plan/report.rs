//! What a plan tells of itself.

use super::Planner;
use crate::backend::StageSpec;
use crate::graph::{NodeId, NodeSpec};
use crate::ids::{BackendIndex, IdMap, PerBackend};
use crate::partition::{Answers, Placed};
use crate::passes::Observer;
use crate::report::{CrossingReport, MoveReport, NodeReport, PortReport, RefusalReport};
use crate::schedule::{Step, StepLabel};
use crate::session::Shared;

impl Planner<'_> {
    pub(super) fn crossing_report(
        &self,
        steps: &[Step],
        stages: &PerBackend<StageSpec>,
        shared: &Shared,
    ) -> Vec<CrossingReport> {
        let id = |b: BackendIndex| shared.backends[b].describe().id.to_string();
        let mut list = Vec::new();
        for step in steps {
            if let Step::Permute { from, to, pairs } = step {
                for (s, _) in pairs {
                    let slot = &stages[*from].tensors[*s];
                    list.push(CrossingReport {
                        value: slot.name.clone(),
                        from: id(*from),
                        to: id(*to),
                        bytes: slot.spec.bytes(),
                    });
                }
            }
        }
        list
    }

    pub(super) fn node_report(
        &self,
        shared: &Shared,
        kernels: &[NodeId],
        answers: &[Answers],
        placed: &Placed,
    ) -> Vec<NodeReport> {
        let graph = self.input.graph;
        let position: IdMap<NodeId, usize> =
            kernels.iter().enumerate().map(|(i, &n)| (n, i)).collect();
        let id = |b: BackendIndex| shared.backends[b].describe().id.to_string();
        let stage = &self.input.stages.stages[self.input.index];
        stage
            .nodes
            .iter()
            .map(|n| {
                let node = &graph.nodes[n.0];
                let kernel = position.get(n);
                let moved = kernel.and_then(|&i| placed.moves[i]).map(|m| MoveReport {
                    from: id(m.from),
                    nodes: m.nodes,
                    seconds: m.seconds,
                    instead_of: m.instead_of,
                });
                let refusals = kernel.map_or_else(Vec::new, |&i| {
                    let refused = answers[i].entries();
                    refused
                        .filter_map(|(b, a)| {
                            a.as_ref().err().map(|r| RefusalReport {
                                backend: id(b),
                                reason: r.reason.clone(),
                            })
                        })
                        .collect()
                });
                NodeReport {
                    name: node.name.clone(),
                    op: node.op.name().to_string(),
                    backend: kernel.map_or_else(|| "plan".to_string(), |&i| id(placed.at[i])),
                    view: node.op.is_view()
                        || node
                            .outputs
                            .first()
                            .is_some_and(|v| self.view_of.contains_key(v)),
                    scope: Vec::new(),
                    stage: self.input.index,
                    inputs: node
                        .present_inputs()
                        .map(|v| graph.value(v).name.clone())
                        .collect(),
                    outputs: node
                        .outputs
                        .iter()
                        .filter_map(|v| {
                            self.specs.get(v).map(|s| PortReport {
                                name: graph.value(*v).name.clone(),
                                dtype: s.dtype.to_string(),
                                shape: s.shape.clone(),
                            })
                        })
                        .collect(),
                    refusals,
                    moved,
                }
            })
            .collect()
    }
}

/// What the steps of a stage are called in a trace: their nodes, or the values that cross.
pub(super) fn labels(
    steps: &[Step],
    stages: &PerBackend<StageSpec>,
    shared: &Shared,
) -> Vec<StepLabel> {
    let id = |b: BackendIndex| shared.backends[b].describe().id.to_string();
    let label = |step: &Step| match step {
        Step::Part { backend, part } => {
            let nodes = &stages[*backend].nodes[stages[*backend].parts[*part].clone()];
            let name = match nodes {
                [] => String::new(),
                [one] => one.name.clone(),
                [first, .., last] => {
                    format!("{} … {} ({} nodes)", first.name, last.name, nodes.len())
                }
            };
            let backend = id(*backend);
            StepLabel { name, backend }
        }
        Step::Permute { from, to, pairs } => {
            let values = pairs.iter().map(|p| &stages[*from].tensors[p.0].name[..]);
            let values: Vec<&str> = values.collect();
            StepLabel {
                name: format!("{} → {}", values.join(", "), id(*to)),
                backend: id(*from),
            }
        }
    };
    steps.iter().map(label).collect()
}

/// Tells the observer of a session which nodes each backend has kernels for.
pub(super) fn tell(
    observer: &dyn Observer,
    steps: &[Step],
    stages: &PerBackend<StageSpec>,
    shared: &Shared,
) {
    for step in steps {
        let Step::Part { backend, part } = step else {
            continue;
        };
        let (stage, id) = (&stages[*backend], &shared.backends[*backend].describe().id);
        for node in &stage.nodes[stage.parts[*part].clone()] {
            let (inputs, outputs) = stage.specs(node);
            let spec = NodeSpec {
                name: &node.name,
                op: &*node.op,
                inputs: &inputs,
                outputs: &outputs,
            };
            observer.given(id, &spec);
        }
    }
}
