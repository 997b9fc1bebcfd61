//! Asking the backends about every node.

use super::Planner;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::TensorSpec;
use crate::graph::{NodeId, NodeSpec, ValueId};
use crate::ids::{BackendId, IdMap};
use crate::partition::{self, Answers, Candidate, Placed, Placement};
use crate::pin;
use crate::session::Run;

impl Planner<'_> {
    /// Asks every backend about every node that needs a kernel, and places them.
    pub(super) fn place(&self, run: &Run<'_>) -> Result<(Vec<NodeId>, Vec<Answers>, Placed)> {
        let shared = &*run.shared;
        let graph = self.input.graph;
        let is_view = |id: NodeId| {
            let outs = &graph.nodes[id.0].outputs;
            outs.first().is_some_and(|o| self.view_of.contains_key(o))
        };
        let kernels: Vec<NodeId> = self.live.iter().copied().filter(|&n| !is_view(n)).collect();
        let descriptions: Vec<_> = shared.backends.iter().map(|b| b.describe()).collect();
        let ids: Vec<BackendId> = descriptions.iter().map(|d| d.id.clone()).collect();
        let pinned = |id: NodeId| {
            let node = &graph.nodes[id.0];
            pin::backend_of(&shared.options.pins, &node.name, node.op.name())
        };
        let mut index: IdMap<ValueId, usize> = IdMap::default();
        let mut bytes = Vec::new();
        let mut candidates = Vec::with_capacity(kernels.len());
        for &id in &kernels {
            let node = &graph.nodes[id.0];
            let (inputs, outputs) = self.asked(id)?;
            let spec = NodeSpec {
                name: &node.name,
                op: node.op.as_ref(),
                inputs: &inputs,
                outputs: &outputs,
            };
            run.interrupt.check()?;
            let mut answers: Answers = shared.backends.iter().map(|b| b.supports(&spec)).collect();
            for (b, answer) in answers.entries_mut() {
                if let Some(refusal) = self.refused.get(&(id, b)) {
                    *answer = Err(refusal.clone());
                }
            }
            if let Some(to) = pinned(id) {
                pin::hold(&mut answers, &ids, to);
            }
            let mut number = |v: ValueId, spec: &TensorSpec| {
                *index.entry(self.root(v)).or_insert_with(|| {
                    bytes.push(spec.bytes());
                    bytes.len() - 1
                })
            };
            let mut candidate = Candidate {
                answers,
                ..Candidate::default()
            };
            for (v, s) in node.inputs.iter().zip(&inputs) {
                if let (Some(v), Some(s)) = (v, s)
                    && s.value.is_none()
                {
                    candidate.reads.push(number(*v, s));
                }
            }
            for (v, s) in node.outputs.iter().zip(&outputs) {
                candidate.writes.push(number(*v, s));
            }
            candidates.push(candidate);
        }
        // A node that is moved for its price would be a fallback, too.
        let placement = match shared.options.strict {
            true => Placement::Fixed,
            false => shared.options.placement,
        };
        let refused = |which: Vec<usize>, why: &str| {
            let lines: Vec<String> = which
                .iter()
                .map(|&i| {
                    let node = &graph.nodes[kernels[i].0];
                    let reasons = partition::reasons(&candidates[i], &ids);
                    format!("{} `{}` ({reasons})", node.op.name(), node.name)
                })
                .collect();
            Error::new(ErrorCode::NoBackend, format!("{why}: {}", lines.join(", ")))
        };
        let placed = partition::place(&candidates, &bytes, &shared.sites, placement)
            .map_err(|homeless| refused(homeless, "no backend of the session runs"))?;
        if shared.options.strict {
            let fallen: Vec<usize> = (0..kernels.len())
                .filter(|&i| {
                    let preferred = candidates[i].answers.first();
                    preferred.is_some_and(Result::is_err) && pinned(kernels[i]).is_none()
                })
                .collect();
            if !fallen.is_empty() {
                return Err(refused(fallen, "the preferred backend does not run"));
            }
        }
        let answers = candidates.into_iter().map(|c| c.answers).collect();
        Ok((kernels, answers, placed))
    }
}
