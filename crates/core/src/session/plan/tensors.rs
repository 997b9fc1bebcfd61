//! The tensors of every backend: locations, crossings, and what leaves the stage.

use super::adapt::{Frame, PlannedKernel};
use super::course::Search;
use super::fallback::Obstacle;
use super::{Draft, PlacedNode, Planner, Source, arena, report};
use crate::backend::{ConstantKey, KernelSpec, Location, Memory, StageSpec, TensorSlot};
use crate::error::Result;
use crate::graph::{NodeId, ValueId};
use crate::ids::{BackendIndex, IdMap, KernelIndex, PerBackend, PerTensor, TensorIndex};
use crate::partition::{Answers, Placed};
use crate::schedule::Step;
use crate::session::Shared;

impl Planner<'_> {
    pub(super) fn lay_out(
        self,
        shared: &Shared,
        kernels: &[NodeId],
        answers: &[Answers],
        placed: &Placed,
    ) -> Result<Draft, Obstacle> {
        let rewritten = self.rewritten;
        let at = &placed.at;
        let count = shared.backends.len();
        let early = shared.options.scheduler.overlaps();
        let order = self.order(kernels, at, count, early);
        let mut table = Table {
            planner: &self,
            device: shared
                .backends
                .iter()
                .map(|b| b.describe().memory == Memory::Device)
                .collect(),
            stages: vec![StageSpec::default(); count].into(),
            of: vec![IdMap::default(); count].into(),
            lives: vec![PerTensor::new(); count].into(),
            home: IdMap::default(),
            feeds: IdMap::default(),
            crossings: Vec::new(),
        };
        for (k, &i) in order.iter().enumerate() {
            for &v in &self.input.graph.nodes[kernels[i].0].outputs {
                table.home.insert(v, (at[i], k));
            }
        }
        let mut steps = Vec::new();
        let mut nodes = Vec::new();
        let mut k = 0;
        while k < order.len() {
            let backend = at[order[k]];
            let waits = |j: usize| early && j > k && table.waits(backend, kernels[order[j]]);
            let end = (k..order.len())
                .find(|&j| at[order[j]] != backend || waits(j))
                .unwrap_or(order.len());
            let start = table.stages[backend].nodes.end();
            for (time, &i) in order.iter().enumerate().take(end).skip(k) {
                let kernel = table.kernel(backend, kernels[i], time, k);
                let kernel = kernel.map_err(Obstacle::of_all)?;
                let node = &self.input.graph.nodes[kernels[i].0];
                let stage = &table.stages[backend];
                let written_at = |v| Some(table.home.get(&self.root(v))?.1);
                nodes.push(PlacedNode {
                    name: node.name.clone(),
                    op: node.op.name().to_string(),
                    backend,
                    kernel,
                    part: stage.parts.end(),
                    outputs: stage.nodes[kernel].outputs.clone(),
                    reads: node.present_inputs().filter_map(written_at).collect(),
                });
            }
            steps.append(&mut table.take_crossings());
            let stage = &mut table.stages[backend];
            let part = stage.parts.push(start..stage.nodes.end());
            steps.push(Step::Part { backend, part });
            k = end;
        }
        let mut results = Vec::new();
        for &v in self.input.live_out {
            let result = table.result(v, order.len());
            results.push((v, result.map_err(Obstacle::of_all)?));
        }
        let Table {
            mut stages,
            lives,
            feeds,
            of,
            ..
        } = table;
        mark_external(&mut stages, &steps, &feeds, &results);
        let mut memory = Vec::new();
        let mut rooms = PerBackend::new();
        let ids = match rewritten {
            // A node that a backend has made cannot be taken from it alone.
            true => Vec::new(),
            false => order.iter().map(|&i| kernels[i]).collect(),
        };
        for (b, stage) in stages.entries_mut() {
            let laid_out = arena::lay_out(stage, &lives[b], shared.backends[b].as_ref());
            let placed = nodes.iter().zip(&ids).filter(|(n, _)| n.backend == b);
            let placed = placed.map(|(n, &id)| (n.kernel, id));
            let (own, plan) = laid_out.map_err(|no_room| no_room.obstacle(b, stage, placed))?;
            rooms.push(own);
            memory.extend(plan.map(|plan| (b, plan)));
        }
        let crossings = self.crossing_report(&steps, &stages, shared);
        let report = self.node_report(shared, kernels, answers, placed);
        let labels = report::labels(&steps, &stages, shared);
        let operations = |i: usize| answers[i][at[i]].as_ref().map_or(0.0, |cost| cost.flops);
        let mut planned = vec![None; kernels.len()];
        for (&i, node) in order.iter().zip(&nodes) {
            planned[i] = Some(PlannedKernel {
                backend: node.backend,
                kernel: node.kernel,
                operations: operations(i),
            });
        }
        // Kernels are in the order of the stage.
        let mut planned = kernels.iter().zip(planned).peekable();
        let of_stage = self.input.stages.stages[self.input.index].nodes.iter();
        let planned = of_stage
            .map(|id| planned.next_if(|(k, _)| *k == id)?.1)
            .collect();
        let operations = (0..kernels.len()).map(operations).sum();
        let feeds = self
            .input
            .feeds
            .iter()
            .map(|(v, _)| (*v, feeds.get(v).cloned().unwrap_or_default()))
            .collect();
        Ok(Draft {
            stages,
            steps,
            labels,
            feeds,
            results,
            nodes,
            ids,
            report,
            crossings,
            memory,
            operations,
            frame: Frame {
                kernels: planned,
                view_of: self.view_of,
                tensors: of,
                rooms,
                specs: self.specs,
                allocators: shared.backends.iter().map(|b| b.allocator()).collect(),
                operations,
                latest: None,
                search: Search::default(),
                lively: Vec::new(),
            },
            rewritten,
        })
    }
}

/// Tells every backend which of its tensors others write and read.
fn mark_external(
    stages: &mut PerBackend<StageSpec>,
    steps: &[Step],
    feeds: &IdMap<ValueId, Vec<(BackendIndex, TensorIndex)>>,
    results: &[(ValueId, Source)],
) {
    let mut written: Vec<(BackendIndex, TensorIndex)> = feeds.values().flatten().copied().collect();
    let mut read = Vec::new();
    for step in steps {
        if let Step::Permute { from, to, pairs } = step {
            read.extend(pairs.iter().map(|(s, _)| (*from, *s)));
            written.extend(pairs.iter().map(|(_, t)| (*to, *t)));
        }
    }
    for (_, source) in results {
        if let Source::Tensor {
            backend, tensor, ..
        } = source
        {
            read.push((*backend, *tensor));
        }
    }
    for (list, into) in [(written, true), (read, false)] {
        for (b, t) in list {
            let stage = &mut stages[b];
            let external = if into {
                &mut stage.inputs
            } else {
                &mut stage.outputs
            };
            external.push(t);
        }
    }
    for stage in stages {
        for external in [&mut stage.inputs, &mut stage.outputs] {
            external.sort_unstable();
            external.dedup();
        }
    }
}

/// The tensors of every backend while a stage is laid out.
struct Table<'a> {
    planner: &'a Planner<'a>,
    device: PerBackend<bool>,
    stages: PerBackend<StageSpec>,
    /// Per backend, the tensor of each value.
    of: PerBackend<IdMap<ValueId, TensorIndex>>,
    /// Per backend and tensor, the first and last time it is needed.
    lives: PerBackend<PerTensor<(usize, usize)>>,
    /// The backend that computes a value, and when.
    home: IdMap<ValueId, (BackendIndex, usize)>,
    feeds: IdMap<ValueId, Vec<(BackendIndex, TensorIndex)>>,
    /// The crossings into the part being built: source backend, target backend, tensors.
    crossings: Vec<(BackendIndex, BackendIndex, (TensorIndex, TensorIndex))>,
}

impl Table<'_> {
    /// Whether a node reads something that another backend computes and that is not here yet.
    fn waits(&self, b: BackendIndex, id: NodeId) -> bool {
        let node = &self.planner.input.graph.nodes[id.0];
        node.present_inputs().any(|v| {
            let root = self.planner.root(v);
            let elsewhere = self.home.get(&root).is_some_and(|&(home, _)| home != b);
            elsewhere && !self.of[b].contains_key(&root)
        })
    }

    fn kernel(
        &mut self,
        b: BackendIndex,
        id: NodeId,
        time: usize,
        part: usize,
    ) -> Result<KernelIndex> {
        let node = &self.planner.input.graph.nodes[id.0];
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for v in &node.inputs {
            inputs.push(match v {
                Some(v) => Some(self.tensor(b, *v, time, part)?),
                None => None,
            });
        }
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for &v in &node.outputs {
            outputs.push(self.add(b, v, Location::Arena { offset: 0 }, (time, time))?);
        }
        Ok(self.stages[b].nodes.push(KernelSpec {
            name: node.name.clone(),
            op: node.op.clone(),
            inputs,
            outputs,
        }))
    }

    fn add(
        &mut self,
        b: BackendIndex,
        v: ValueId,
        location: Location,
        life: (usize, usize),
    ) -> Result<TensorIndex> {
        let spec = self.planner.spec(v)?.clone();
        let stage = &mut self.stages[b];
        let tensor = stage.tensors.push(TensorSlot {
            name: self.planner.input.graph.value(v).name.clone(),
            spec,
            location,
        });
        self.lives[b].push(life);
        self.of[b].insert(v, tensor);
        Ok(tensor)
    }

    /// The tensor of `v` on backend `b`, made or brought there if it is not; used at `time` by the
    /// part that starts at `part`.
    fn tensor(
        &mut self,
        b: BackendIndex,
        v: ValueId,
        time: usize,
        part: usize,
    ) -> Result<TensorIndex> {
        if let Some(&t) = self.of[b].get(&v) {
            let root = self.stages[b].root(t);
            let life = &mut self.lives[b][root];
            life.1 = life.1.max(time);
            return Ok(t);
        }
        let spec = self.planner.spec(v)?;
        if spec.value.is_some() {
            let constant = self.planner.input.graph.value(v).constant.is_some();
            let key = ConstantKey((self.planner.input.runner << 32) | v.0 as u64);
            let location = if constant {
                Location::Constant(key)
            } else {
                Location::Planned
            };
            return self.add(b, v, location, (time, time));
        }
        if let Some(&of) = self.planner.view_of.get(&v) {
            let t = self.tensor(b, of, time, part)?;
            return self.add(b, v, Location::Alias(t), (time, time));
        }
        // The host takes what comes in as it is; a device copies it into its arena.
        let location = if self.device[b] {
            Location::Arena { offset: 0 }
        } else {
            Location::Input
        };
        if let Some(&(home, _)) = self.home.get(&v) {
            let t = self.add(b, v, location, (part, time))?;
            let source = self.tensor(home, v, part, part)?;
            self.crossings.push((home, b, (source, t)));
            return Ok(t);
        }
        let t = self.add(b, v, location, (0, time))?;
        self.feeds.entry(v).or_default().push((b, t));
        Ok(t)
    }

    fn take_crossings(&mut self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (source, target, pair) in self.crossings.drain(..) {
            let same = steps.iter_mut().find_map(|s| match s {
                Step::Permute { from, to, pairs } if (*from, *to) == (source, target) => {
                    Some(pairs)
                }
                _ => None,
            });
            match same {
                Some(pairs) => pairs.push(pair),
                None => steps.push(Step::Permute {
                    from: source,
                    to: target,
                    pairs: vec![pair],
                }),
            }
        }
        steps
    }

    /// Where the value `v`, which leaves the stage at time `end`, comes from.
    fn result(&mut self, v: ValueId, end: usize) -> Result<Source> {
        let spec = self.planner.spec(v)?;
        if let Some(value) = &spec.value {
            return Ok(Source::Known(value.clone()));
        }
        let root = self.planner.root(v);
        let Some(&(home, node)) = self.home.get(&root) else {
            return match &self.planner.spec(root)?.value {
                Some(t) => Ok(Source::Known(t.reshaped(&spec.shape)?)),
                None => Ok(Source::Feed(root, spec.shape.clone())),
            };
        };
        let tensor = self.tensor(home, v, end, end)?;
        let at = self.stages[home].root(tensor);
        if !self.device[home] {
            self.stages[home].tensors[at].location = Location::Output;
        }
        Ok(Source::Tensor {
            backend: home,
            tensor,
            node,
        })
    }
}
