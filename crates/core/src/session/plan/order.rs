//! The order of kernels.

use std::collections::BTreeSet;

use super::Planner;
use crate::graph::{NodeId, ValueId};
use crate::ids::{BackendIndex, IdMap, PerBackend};

impl Planner<'_> {
    /// Orders kernels into parts, each as long as it can be before another backend has to work.
    /// `early`: a part ends as soon as another backend can go on.
    pub(super) fn order(
        &self,
        kernels: &[NodeId],
        at: &[BackendIndex],
        backends: usize,
        early: bool,
    ) -> Vec<usize> {
        let graph = self.input.graph;
        let mut writer: IdMap<ValueId, usize> = IdMap::default();
        for (i, id) in kernels.iter().enumerate() {
            for &v in &graph.nodes[id.0].outputs {
                writer.insert(v, i);
            }
        }
        let mut waiting = vec![0usize; kernels.len()];
        let mut readers = vec![Vec::new(); kernels.len()];
        for (i, id) in kernels.iter().enumerate() {
            for v in graph.nodes[id.0].present_inputs() {
                if let Some(&w) = writer.get(&self.root(v)) {
                    waiting[i] += 1;
                    readers[w].push(i);
                }
            }
        }
        let mut ready: PerBackend<_> = vec![BTreeSet::new(); backends].into();
        for i in 0..kernels.len() {
            if waiting[i] == 0 {
                ready[at[i]].insert(i);
            }
        }
        let mut order = Vec::with_capacity(kernels.len());
        let mut current = BackendIndex::default();
        while order.len() < kernels.len() {
            let Some(i) = ready[current].pop_first() else {
                let first =
                    (ready.entries()).filter_map(|(b, ready)| ready.first().map(|&i| (i, b)));
                match first.min() {
                    Some((_, b)) => current = b,
                    None => break,
                }
                continue;
            };
            order.push(i);
            for &r in &readers[i] {
                waiting[r] -= 1;
                if waiting[r] == 0 {
                    ready[at[r]].insert(r);
                    if early && at[r] != at[i] {
                        current = at[r];
                    }
                }
            }
        }
        order
    }
}
