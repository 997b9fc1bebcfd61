//! What of a plan runs for some outputs. Kernels stay as they were made for all of them, so that the outputs are the same bytes;
//! memory of what does not run is left unused.

use std::sync::Arc;

use super::{PlacedNode, PlannedStage, Source};
use crate::executable::Executable;
use crate::ids::{PerBackend, PerKernel};
use crate::schedule::{Step, StepLabel};
use crate::session::runner::{Needed, SETS};

/// The part of a plan that some outputs need.
pub(super) struct Share {
    pub steps: Vec<Step>,
    /// How each of the steps is called in a trace.
    pub labels: Vec<StepLabel>,
    /// For each backend, the kernels that do not run.
    pub skipped: PerBackend<Arc<PerKernel<bool>>>,
}

impl PlannedStage {
    /// Whether the node did not run in the latest run.
    pub fn left_out(&self, node: &PlacedNode) -> bool {
        let skipped = self.ran.as_ref().map(|share| &share.skipped[node.backend]);
        skipped.is_some_and(|skipped| skipped[node.kernel])
    }

    /// What these outputs need.
    pub(super) fn share(&mut self, needed: &Arc<Needed>) -> Arc<Share> {
        let mut shares = self.shares.iter();
        if let Some((_, kept)) = shares.find(|(of, _)| Arc::ptr_eq(of, needed)) {
            return kept.clone();
        }
        let runs = self.needed_nodes(needed);
        let mut skipped: Vec<PerKernel<bool>> = vec![PerKernel::new(); self.executables.len()];
        // Kernels are in the order of the nodes.
        for (node, runs) in self.nodes.iter().zip(&runs) {
            skipped[node.backend.0].push(!runs);
        }
        let steps = self.steps.iter().zip(&self.labels);
        let steps =
            steps.filter_map(|(step, label)| Some((self.kept(step, &runs)?, label.clone())));
        let (steps, labels) = steps.unzip();
        let share = Arc::new(Share {
            steps,
            labels,
            skipped: skipped.into_iter().map(Arc::new).collect(),
        });
        if self.shares.len() == SETS {
            self.shares.remove(0);
        }
        self.shares.push((needed.clone(), share.clone()));
        share
    }

    /// Which nodes have to run. Where an executable leaves out no kernels, all nodes of a part have to where one of them has.
    fn needed_nodes(&mut self, needed: &Needed) -> Vec<bool> {
        let skip = |e: &mut Option<Box<dyn Executable>>| e.as_mut().is_some_and(|e| e.skip(None));
        let skips: PerBackend<bool> = self.executables.iter_mut().map(skip).collect();
        let mut runs = vec![false; self.nodes.len()];
        for (v, source) in &self.results {
            if let Source::Tensor { node, .. } = source {
                runs[*node] |= needed.any(&[*v]);
            }
        }
        let part = |node: &PlacedNode| (node.backend, node.part);
        let parts = self.nodes.chunk_by(|a, b| part(a) == part(b));
        let mut end = runs.len();
        for nodes in parts.collect::<Vec<_>>().into_iter().rev() {
            let start = end - nodes.len();
            if !skips[nodes[0].backend] && runs[start..end].contains(&true) {
                runs[start..end].fill(true);
            }
            for (i, node) in (start..end).zip(nodes).rev() {
                if runs[i] {
                    node.reads.iter().for_each(|&read| runs[read] = true);
                }
            }
            end = start;
        }
        runs
    }

    /// What is left of a step where these nodes run.
    fn kept(&self, step: &Step, runs: &[bool]) -> Option<Step> {
        let running = || self.nodes.iter().zip(runs).filter(|(_, runs)| **runs);
        match step {
            Step::Part { backend, part } => {
                let is_of = |(n, _): (&PlacedNode, _)| (n.backend, n.part) == (*backend, *part);
                running().any(is_of).then(|| step.clone())
            }
            Step::Permute { from, to, pairs } => {
                let mut pairs = pairs.clone();
                pairs.retain(|(tensor, _)| {
                    let mut nodes = self.nodes.iter();
                    let makes = |n: &PlacedNode| n.backend == *from && n.outputs.contains(tensor);
                    nodes.position(makes).is_some_and(|made| {
                        running().any(|(n, _)| n.backend == *to && n.reads.contains(&made))
                    })
                });
                let (from, to) = (*from, *to);
                (!pairs.is_empty()).then_some(Step::Permute { from, to, pairs })
            }
        }
    }
}
