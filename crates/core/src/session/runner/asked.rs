//! What a run of some outputs needs.

use std::sync::Arc;

use super::Runner;
use crate::graph::ValueId;
use crate::ids::PerBackend;

/// The latest sets of outputs that are kept, in a graph and in each of its plans.
pub(in crate::session) const SETS: usize = 8;

/// What some outputs of a graph need of its stages.
pub(in crate::session) struct Needed {
    /// The outputs, as [`crate::session::Run::asked`] names them.
    asked: Vec<bool>,
    /// Values that leave their stages: the outputs, and what those stages and control-flow nodes read that have to run.
    leaving: Vec<bool>,
}

impl Needed {
    /// Whether one of these values has to leave its stage.
    pub fn any(&self, values: &[ValueId]) -> bool {
        values.iter().any(|v| self.leaving[v.0])
    }
}

impl Runner {
    /// What the outputs `asked` need. A stage is planned whole, so that all that it reads has to be there where a part of it runs.
    pub(super) fn needed(&mut self, asked: &[bool]) -> Arc<Needed> {
        if let Some(kept) = self.needed.iter().find(|needed| needed.asked == asked) {
            return kept.clone();
        }
        let mut needed = Needed {
            asked: asked.to_vec(),
            leaving: vec![false; self.graph.values.len()],
        };
        for (i, v) in self.graph.outputs.iter().enumerate() {
            needed.leaving[v.0] |= asked.get(i).is_none_or(|asked| *asked);
        }
        for (s, stage) in self.stages.stages.iter().enumerate().rev() {
            for id in stage.control.iter().rev() {
                let node = &self.graph.nodes[id.0];
                if needed.any(&node.outputs) {
                    let read = node.present_inputs();
                    read.for_each(|v| needed.leaving[v.0] = true);
                }
            }
            if needed.any(&self.live_out[s]) {
                let read = self.live_in[s].iter();
                read.for_each(|v| needed.leaving[v.0] = true);
            }
        }
        if self.needed.len() == SETS {
            self.needed.remove(0);
        }
        let needed = Arc::new(needed);
        self.needed.push(needed.clone());
        needed
    }

    /// Forgets the times of a stage that does not run.
    pub(super) fn forget_times(&mut self, index: usize) {
        for (_, planned) in &mut self.plans[index] {
            planned.times = PerBackend::new();
        }
    }
}
