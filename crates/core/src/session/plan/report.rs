//! What a plan tells of itself.

use std::collections::HashMap;

use super::{Answers, Planner};
use crate::backend::StageSpec;
use crate::graph::NodeId;
use crate::report::{CrossingReport, NodeReport, PortReport, RefusalReport};
use crate::schedule::Step;
use crate::session::Shared;

impl Planner<'_> {
    pub(super) fn crossing_report(
        &self,
        steps: &[Step],
        stages: &[StageSpec],
        shared: &Shared,
    ) -> Vec<CrossingReport> {
        let id = |b: usize| shared.backends[b].describe().id.to_string();
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
        at: &[usize],
    ) -> Vec<NodeReport> {
        let graph = self.input.graph;
        let position: HashMap<NodeId, usize> =
            kernels.iter().enumerate().map(|(i, &n)| (n, i)).collect();
        let id = |b: usize| shared.backends[b].describe().id.to_string();
        let stage = &self.input.stages.stages[self.input.index];
        stage
            .nodes
            .iter()
            .map(|n| {
                let node = &graph.nodes[n.0];
                let placed = position.get(n);
                let refusals = placed.map_or_else(Vec::new, |&i| {
                    let refused = answers[i].iter().enumerate();
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
                    backend: placed.map_or_else(|| "plan".to_string(), |&i| id(at[i])),
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
                }
            })
            .collect()
    }
}
