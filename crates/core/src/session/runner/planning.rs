//! Which plans a runner makes, keeps and drops.

use std::collections::HashMap;

use super::Runner;
use crate::backend::RawConstants;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::{Fact, InputFact, TensorSpec};
use crate::graph::{InferContext, NodeId, ValueId};
use crate::report::PortReport;
use crate::session::plan::{self, Key, PlannedStage, StageInput};
use crate::session::{Run, Shared};
use crate::tensor;

impl Runner {
    /// Plans what can be planned before the first run: the first stage if its input shapes are
    /// known, and the bodies of control flow that follows it. Bodies that are to be tuned wait for
    /// the first run.
    ///
    /// Where raw constants are dropped, only one that is an output of the graph outlives this.
    pub fn prepare(&mut self, run: &mut Run<'_>, inputs: &[Fact], raw: RawConstants) -> Result<()> {
        let specs = self.specs(inputs);
        let Some(feeds) = self.first_feeds(&specs) else {
            return Ok(());
        };
        self.plan(0, feeds, run, raw)?;
        if run.shared.options.tune {
            return Ok(());
        }
        for (id, facts) in self.control_facts(0, &specs) {
            let bodies = self.graph.nodes[id.0].op.bodies();
            let facts = bodies.map_or_else(Vec::new, |bodies| bodies.facts(&facts));
            for body in self.bodies.entry(id).or_default() {
                // A branch that is never taken may not fit the shapes; a run that takes it says so.
                let _ = body.prepare(run, &facts, RawConstants::Keep);
                run.interrupt.check()?;
            }
        }
        Ok(())
    }

    /// Has every constant's memory go with it, where constants share the buffer of a file.
    ///
    /// # Errors
    /// `Limit` where memory for a copy of one is short.
    pub fn cut_constants(&mut self) -> Result<()> {
        let values = self.graph.values.iter_mut();
        tensor::cut(values.filter_map(|value| value.constant.as_mut()))
    }

    /// The control flow of a stage that was planned for `inputs`, and the facts of what it reads.
    fn control_facts(
        &self,
        stage: usize,
        inputs: &HashMap<ValueId, TensorSpec>,
    ) -> Vec<(NodeId, Vec<Fact>)> {
        let control = &self.stages.stages[stage].control;
        if control.is_empty() {
            return Vec::new();
        }
        let planned = self.plans[stage].last();
        let nodes = planned.into_iter().flat_map(|(_, p)| &p.report);
        let mut ports: HashMap<&str, &PortReport> = HashMap::new();
        for port in nodes.flat_map(|n| &n.outputs) {
            ports.entry(&port.name).or_insert(port);
        }
        let fact = |v: ValueId| {
            if let Some(s) = inputs.get(&v) {
                return Fact::fixed(s.dtype, &s.shape);
            }
            let value = self.graph.value(v);
            match ports.get(value.name.as_str()) {
                Some(port) => crate::DType::from_name(&port.dtype)
                    .map_or_else(Fact::default, |d| Fact::fixed(d, &port.shape)),
                None => value.fact.clone(),
            }
        };
        let facts = |id: &NodeId| {
            let read = self.graph.nodes[id.0].inputs.iter();
            let facts = read.map(|v| v.map_or_else(Fact::default, fact));
            (*id, facts.collect())
        };
        control.iter().map(facts).collect()
    }

    /// The graph's inputs whose shapes are known.
    fn specs(&self, inputs: &[Fact]) -> HashMap<ValueId, TensorSpec> {
        let mut specs = HashMap::new();
        for (&v, fact) in self.graph.inputs.iter().zip(inputs) {
            if let (Some(dtype), Some(shape)) = (fact.dtype, fact.concrete())
                && fact.kind.is_tensor()
            {
                specs.insert(v, TensorSpec::new(dtype, &shape));
            }
        }
        specs
    }

    /// What the first stage reads, if it can be planned before a run.
    fn first_feeds(
        &self,
        specs: &HashMap<ValueId, TensorSpec>,
    ) -> Option<Vec<(ValueId, TensorSpec)>> {
        if !self.stages.stages[0].materialise.is_empty() {
            return None;
        }
        let read = self.live_in[0].iter();
        read.map(|v| specs.get(v).map(|s| (*v, s.clone())))
            .collect()
    }

    /// Measures what the first stage leaves a choice of, if it can be planned before a run.
    pub async fn tune_first(&self, run: &mut Run<'_>, inputs: &[Fact]) -> Result<()> {
        let feeds = run.shared.options.tune.then(|| self.specs(inputs));
        match feeds.and_then(|specs| self.first_feeds(&specs)) {
            Some(feeds) => self.tune(0, &feeds, run).await,
            None => Ok(()),
        }
    }

    /// Measures what a stage that has no plan for these inputs leaves a choice of, if the options
    /// say so.
    pub(super) async fn tune(
        &self,
        index: usize,
        feeds: &[(ValueId, TensorSpec)],
        run: &mut Run<'_>,
    ) -> Result<()> {
        let planned = || {
            let key = Key::of(feeds);
            self.plans[index].iter().any(|(k, _)| *k == key)
        };
        if !run.shared.options.tune || planned() {
            return Ok(());
        }
        let draft = plan::draft(self.stage(index, feeds.to_vec()), run)?;
        let trials = draft.trials(run.shared)?;
        drop(draft);
        run.measure(trials).await
    }

    fn stage(&self, index: usize, feeds: Vec<(ValueId, TensorSpec)>) -> StageInput<'_> {
        StageInput {
            graph: &self.graph,
            stages: &self.stages,
            index,
            live_out: &self.live_out[index],
            runner: self.id,
            feeds,
        }
    }

    /// Whether there is nothing to plan but the first stage, once, if the inputs have fixed shapes.
    pub fn plans_once(&self) -> bool {
        let [stage] = &self.stages.stages[..] else {
            return false;
        };
        let looked_at = |v: &ValueId| self.stages.known[v.0].is_some();
        stage.control.is_empty()
            && stage.materialise.is_empty()
            && !self.live_in[0].iter().any(looked_at)
    }

    /// The plan of a stage for these inputs, made now if it is not kept.
    pub(super) fn plan(
        &mut self,
        index: usize,
        feeds: Vec<(ValueId, TensorSpec)>,
        run: &mut Run<'_>,
        raw: RawConstants,
    ) -> Result<&mut PlannedStage> {
        let key = Key::of(&feeds);
        match self.plans[index].iter().position(|(k, _)| *k == key) {
            Some(i) if i + 1 == self.plans[index].len() => {}
            Some(i) => {
                let kept = self.plans[index].remove(i);
                self.plans[index].push(kept);
                run.shared.revision += 1;
            }
            None => {
                if !self.plans[index].is_empty() {
                    may_plan_again(run.shared)?;
                }
                if self.adapt(index, &key, &feeds, run)? {
                    // Who reads the report anew at every revision does not read it at every step of a text.
                    run.shared.followed += 1;
                    run.shared.revision += u64::from(run.shared.followed.is_power_of_two());
                } else {
                    self.plan_anew(index, key, feeds, run, raw)?;
                    run.shared.followed = 0;
                    run.shared.revision += 1;
                }
            }
        }
        self.plans[index]
            .last_mut()
            .map(|(_, p)| p)
            .ok_or_else(|| Error::new(ErrorCode::State, "a plan was dropped while it was needed"))
    }

    fn plan_anew(
        &mut self,
        index: usize,
        key: Key,
        feeds: Vec<(ValueId, TensorSpec)>,
        run: &mut Run<'_>,
        raw: RawConstants,
    ) -> Result<()> {
        let draft = plan::draft(self.stage(index, feeds), run)?;
        if raw == RawConstants::Drop {
            let mut kept = vec![false; self.graph.values.len()];
            self.graph.outputs.iter().for_each(|v| kept[v.0] = true);
            for (value, kept) in self.graph.values.iter_mut().zip(kept) {
                value.constant.take_if(|_| !kept);
            }
        }
        let plans = &mut self.plans[index];
        while plans.len() >= run.shared.plans_kept() {
            plans.remove(0);
        }
        let adapts = raw == RawConstants::Keep;
        let planned = run.resize(raw, |run| draft.generate(run, adapts))?;
        plans.push((key, planned));
        run.shared.plans.made += 1;
        Ok(())
    }

    /// Makes the plan for these inputs of one that is kept: of the latest where the inputs have grown a little
    /// since, or of the one nearest to them where no more plans are to be kept. False where there is none, or
    /// where it cannot follow.
    #[inline(never)]
    fn adapt(
        &mut self,
        index: usize,
        key: &Key,
        feeds: &[(ValueId, TensorSpec)],
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let plans = &self.plans[index];
        let full = plans.len() >= run.shared.plans_kept();
        let from = match plans.last() {
            Some((latest, _)) if key.grew_from(latest) => Some(plans.len() - 1),
            Some(_) if full => (0..plans.len()).max_by_key(|&i| key.shared_with(&plans[i].0)),
            _ => None,
        };
        // What is tuned is measured for its own shapes.
        let Some(from) = from.filter(|_| !run.shared.options.tune) else {
            return Ok(false);
        };
        let input = self.stage(index, feeds.to_vec());
        let Some(adaptation) = self.plans[index][from].1.adaptation(&input, run)? else {
            return Ok(false);
        };
        let (_, mut planned) = self.plans[index].remove(from);
        let adapted = run.resize(RawConstants::Keep, |run| planned.adapt(adaptation, run))?;
        if adapted {
            run.shared.plans.adapted += 1;
            self.plans[index].push((key.clone(), planned));
        }
        Ok(adapted)
    }

    /// The facts of the graph's outputs for inputs like these.
    pub fn output_facts(&self, inputs: &[Fact]) -> Vec<Fact> {
        let mut facts: HashMap<ValueId, Fact> = self
            .graph
            .inputs
            .iter()
            .copied()
            .zip(inputs.iter().cloned())
            .collect();
        for node in &self.graph.nodes {
            let known: Vec<Option<InputFact>> = node
                .inputs
                .iter()
                .map(|v| {
                    v.map(|v| {
                        let value = self.graph.value(v);
                        InputFact {
                            fact: facts.get(&v).unwrap_or(&value.fact).clone(),
                            value: value.constant.clone(),
                        }
                    })
                })
                .collect();
            let ctx = InferContext::new(&known, node.outputs.len());
            if let Ok(out) = node.op.infer(&ctx) {
                facts.extend(node.outputs.iter().copied().zip(out));
            }
        }
        let fact = |v: &ValueId| facts.get(v).unwrap_or(&self.graph.value(*v).fact).clone();
        self.graph.outputs.iter().map(fact).collect()
    }
}

/// `State` where a backend plans a session only once.
fn may_plan_again(shared: &Shared) -> Result<()> {
    let mut backends = shared.backends.iter().zip(&shared.configs);
    match backends.find(|(_, config)| !config.dynamic_tensors) {
        Some((backend, _)) => Err(Error::new(
            ErrorCode::State,
            format!(
                "the backend `{}` does not take inputs of other shapes",
                backend.describe().id
            ),
        )
        .with_hint("load the model once for each shape")),
        None => Ok(()),
    }
}
