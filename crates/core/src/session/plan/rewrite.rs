//! Offering backends what was placed on them, and taking over what they make of it.

use std::collections::{BTreeSet, HashSet};

use super::Planner;
use super::fallback::Refused;
use crate::backend::{Backend, KernelSpec, Replacement, Subgraph, SubgraphTensor};
use crate::error::{Error, ErrorCode, Result};
use crate::fact::Fact;
use crate::graph::{Graph, Node, NodeId, ValueId};
use crate::ids::{BackendIndex, IdMap, IdSet, KernelIndex, PerKernel, PerTensor, TensorIndex};
use crate::session::Shared;
use crate::stages::Stages;

/// What the backends made of a stage.
#[derive(Default)]
pub(super) struct Rewritten {
    pub given_back: Refused,
    /// The graph with nodes replaced in this stage; the stage lists those that are left.
    pub graph: Option<(Graph, Stages)>,
}

impl Rewritten {
    /// Whether everything stays as it is.
    pub fn is_empty(&self) -> bool {
        self.given_back.is_empty() && self.graph.is_none()
    }
}

/// A subgraph in the words of the graph.
struct Offer {
    nodes: PerKernel<NodeId>,
    values: PerTensor<ValueId>,
    subgraph: Subgraph,
}

impl Offer {
    /// Node `i`, which the backend gives back or replaces; `taken` are those that it has said so of before.
    ///
    /// # Errors
    /// Why it cannot be.
    fn take(&self, i: KernelIndex, taken: &mut HashSet<KernelIndex>) -> Result<NodeId, String> {
        let there = self.nodes.len();
        let node = self.nodes.get(i);
        let node = *node.ok_or_else(|| format!("it names the node {i} of {there} nodes"))?;
        match taken.insert(i) {
            true => Ok(node),
            false => {
                let name = &self.subgraph.nodes[i].name;
                Err(format!("it names the node {i}, `{name}`, twice"))
            }
        }
    }
}

impl Planner<'_> {
    /// Offers every backend with an optimizer the connected nodes that were placed on it.
    pub(super) fn offer(
        &self,
        shared: &Shared,
        kernels: &[NodeId],
        at: &[BackendIndex],
    ) -> Result<Rewritten> {
        let mut rewritten = Rewritten::default();
        if shared.backends.iter().all(|b| b.optimizer().is_none()) {
            return Ok(rewritten);
        }
        let readers = self.readers();
        for (b, backend) in shared.backends.entries() {
            let Some(optimizer) = backend.optimizer() else {
                continue;
            };
            let own: Vec<NodeId> = (kernels.iter().zip(at))
                .filter_map(|(&n, &on)| (on == b).then_some(n))
                .collect();
            let mut gone = IdSet::default();
            for nodes in self.connected(&own) {
                let offer = self.subgraph(nodes, &readers)?;
                let made = optimizer.optimise(&offer.subgraph)?;
                let wrong = |why: String| wrong(&**backend, &why);
                let mut taken = HashSet::new();
                for (i, refusal) in made.refused {
                    let node = offer.take(i, &mut taken).map_err(wrong)?;
                    rewritten.given_back.insert((node, b), refusal);
                }
                for replacement in made.replaced {
                    let nodes = replacement.nodes.iter().map(|&i| offer.take(i, &mut taken));
                    let nodes: Vec<NodeId> = nodes.collect::<Result<_, String>>().map_err(wrong)?;
                    gone.extend(nodes);
                    self.replace(&mut rewritten, &offer, replacement)
                        .map_err(wrong)?;
                }
            }
            if let Some((graph, stages)) = &mut rewritten.graph {
                let stage = &mut stages.stages[self.input.index].nodes;
                stage.retain(|n| !gone.contains(n));
                *stage = self
                    .sorted(graph, stage)
                    .map_err(|why| wrong(&**backend, &why))?;
            }
        }
        Ok(rewritten)
    }

    /// Groups of nodes that are connected by values, each in order.
    fn connected(&self, nodes: &[NodeId]) -> Vec<Vec<NodeId>> {
        let graph = self.input.graph;
        let mut writer: IdMap<ValueId, usize> = IdMap::default();
        let mut neighbours = vec![Vec::new(); nodes.len()];
        for (i, n) in nodes.iter().enumerate() {
            let node = &graph.nodes[n.0];
            for &w in node.present_inputs().filter_map(|v| writer.get(&v)) {
                neighbours[w].push(i);
                neighbours[i].push(w);
            }
            writer.extend(node.outputs.iter().map(|&v| (v, i)));
        }
        let mut seen = vec![false; nodes.len()];
        let mut groups = Vec::new();
        for first in 0..nodes.len() {
            if std::mem::replace(&mut seen[first], true) {
                continue;
            }
            let mut group = vec![first];
            let mut looked_at = 0;
            while let Some(&i) = group.get(looked_at) {
                looked_at += 1;
                let new = neighbours[i].iter().copied();
                group.extend(new.filter(|&j| !std::mem::replace(&mut seen[j], true)));
            }
            group.sort_unstable();
            groups.push(group.into_iter().map(|i| nodes[i]).collect());
        }
        groups
    }

    /// How often each value is read, by nodes that are left and from outside of the stage.
    fn readers(&self) -> IdMap<ValueId, usize> {
        let graph = self.input.graph;
        let nodes = self.live.iter();
        let read = nodes.flat_map(|n| graph.nodes[n.0].present_inputs());
        let mut readers = IdMap::default();
        for v in read.chain(self.input.live_out.iter().copied()) {
            *readers.entry(v).or_insert(0) += 1;
        }
        readers
    }

    /// `readers` are those of [`Planner::readers`].
    fn subgraph(&self, nodes: Vec<NodeId>, readers: &IdMap<ValueId, usize>) -> Result<Offer> {
        let graph = self.input.graph;
        let mut inside: IdMap<ValueId, usize> = IdMap::default();
        for v in nodes.iter().flat_map(|n| graph.nodes[n.0].present_inputs()) {
            *inside.entry(v).or_insert(0) += 1;
        }
        let mut offer = Offer {
            values: PerTensor::new(),
            subgraph: Subgraph::default(),
            nodes: nodes.into(),
        };
        let mut index: IdMap<ValueId, TensorIndex> = IdMap::default();
        for n in &offer.nodes {
            let node = &graph.nodes[n.0];
            for v in node.present_inputs().chain(node.outputs.iter().copied()) {
                if index.contains_key(&v) {
                    continue;
                }
                index.insert(v, offer.values.push(v));
                offer.subgraph.tensors.push(SubgraphTensor {
                    name: graph.value(v).name.clone(),
                    spec: self.spec(v)?.clone(),
                    escapes: readers.get(&v) > inside.get(&v),
                });
            }
            offer.subgraph.nodes.push(KernelSpec {
                name: node.name.clone(),
                op: node.op.clone(),
                inputs: node.inputs.iter().map(|v| v.map(|v| index[&v])).collect(),
                outputs: node.outputs.iter().map(|v| index[v]).collect(),
            });
        }
        Ok(offer)
    }

    /// Puts the new nodes at the end of the graph and into the stage, where those that they replace still are.
    ///
    /// # Errors
    /// Why the replacement cannot be.
    fn replace(
        &self,
        rewritten: &mut Rewritten,
        offer: &Offer,
        replacement: Replacement,
    ) -> Result<(), String> {
        /// More new intermediates than nodes could write come of a wrong index.
        const NEW: usize = 4096;

        let (graph, stages) = rewritten
            .graph
            .get_or_insert_with(|| (self.input.graph.clone(), self.input.stages.clone()));
        let known = offer.values.len();
        let mut values = offer.values.clone();
        for spec in replacement.with {
            let tensors = spec.inputs.iter().copied().flatten();
            let last = tensors.chain(spec.outputs.iter().copied()).max();
            if let Some(last) = last.filter(|t| t.0 >= known + NEW) {
                let name = &spec.name;
                return Err(format!(
                    "its node `{name}` names the tensor {last}, where {known} are known"
                ));
            }
            while last.is_some_and(|t| t.0 >= values.len()) {
                let name = format!("{}:{}", spec.name, values.len());
                values.push(graph.add_value(name, Fact::default()));
                stages.known.push(None);
                stages.wanted.push(false);
            }
            graph.nodes.push(Node {
                name: spec.name,
                op: spec.op,
                inputs: spec.inputs.iter().map(|t| t.map(|t| values[t])).collect(),
                outputs: spec.outputs.iter().map(|&t| values[t]).collect(),
            });
            let new = NodeId(graph.nodes.len() - 1);
            stages.stages[self.input.index].nodes.push(new);
        }
        Ok(())
    }

    /// The nodes in an order in which every value is written once and before it is read, the given one
    /// where it can be.
    ///
    /// # Errors
    /// Why there is no such order.
    fn sorted(&self, graph: &Graph, nodes: &[NodeId]) -> Result<Vec<NodeId>, String> {
        let node = |n: &NodeId| &graph.nodes[n.0];
        let mut writer: IdMap<ValueId, usize> = IdMap::default();
        for (i, n) in nodes.iter().enumerate() {
            for &v in &node(n).outputs {
                if let Some(other) = writer.insert(v, i) {
                    let (one, two) = (&node(&nodes[other]).name, &node(n).name);
                    let tensor = &graph.value(v).name;
                    return Err(format!(
                        "`{one}` and `{two}` both write the tensor `{tensor}`"
                    ));
                }
            }
        }
        self.all_written(graph, nodes, &writer)?;
        let mut waiting = vec![0; nodes.len()];
        let mut readers = vec![Vec::new(); nodes.len()];
        for (i, n) in nodes.iter().enumerate() {
            for v in node(n).present_inputs() {
                if let Some(&w) = writer.get(&v) {
                    waiting[i] += 1;
                    readers[w].push(i);
                }
            }
        }
        let mut ready = BTreeSet::new();
        ready.extend((0..nodes.len()).filter(|&i| waiting[i] == 0));
        let mut order = Vec::with_capacity(nodes.len());
        while let Some(i) = ready.pop_first() {
            order.push(nodes[i]);
            for &r in &readers[i] {
                waiting[r] -= 1;
                if waiting[r] == 0 {
                    ready.insert(r);
                }
            }
        }
        let Some(mut i) = waiting.iter().position(|&n| n > 0) else {
            return Ok(order);
        };
        // From a node behind a cycle to one in it: what waits, waits for another that does.
        let mut seen = HashSet::new();
        while seen.insert(i) {
            let inputs = node(&nodes[i]).present_inputs();
            let mut writers = inputs.filter_map(|v| writer.get(&v).copied());
            i = writers.find(|&w| waiting[w] > 0).unwrap_or(i);
        }
        let name = &node(&nodes[i]).name;
        Err(format!("`{name}` waits for what it writes itself"))
    }

    /// Whether what nodes of this stage wrote, and others read, is still written.
    ///
    /// # Errors
    /// The tensor that nobody writes, and who reads it.
    fn all_written(
        &self,
        graph: &Graph,
        nodes: &[NodeId],
        writer: &IdMap<ValueId, usize>,
    ) -> Result<(), String> {
        let before = &self.input.stages.stages[self.input.index].nodes;
        let old = self.input.graph;
        let made: IdSet<ValueId> = (before.iter())
            .flat_map(|n| old.nodes[n.0].outputs.iter().copied())
            .collect();
        let lost = |v: &ValueId| {
            let ours = made.contains(v) || v.0 >= old.values.len();
            ours && !writer.contains_key(v)
        };
        for n in nodes {
            let node = &graph.nodes[n.0];
            if let Some(v) = node.present_inputs().find(lost) {
                let (tensor, name) = (&graph.value(v).name, &node.name);
                return Err(format!(
                    "nothing writes the tensor `{tensor}`, which `{name}` reads"
                ));
            }
        }
        match self.input.live_out.iter().copied().find(lost) {
            None => Ok(()),
            Some(v) => {
                let tensor = &graph.value(v).name;
                Err(format!(
                    "nothing writes the tensor `{tensor}`, which is read after the stage"
                ))
            }
        }
    }
}

fn wrong(backend: &dyn Backend, why: &str) -> Error {
    let id = &backend.describe().id;
    Error::new(
        ErrorCode::State,
        format!(
            "the backend `{id}` rewrote its part of the graph into something that cannot run: {why}"
        ),
    )
}
