//! Which plans a runner makes, keeps and drops.

use std::collections::HashMap;

use super::Runner;
use crate::backend::RawConstants;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::{Fact, InputFact, TensorSpec};
use crate::graph::{InferContext, ValueId};
use crate::session::plan::{self, Fallback, Key, Obstacle, PlannedStage, StageInput};
use crate::session::{Run, Shared};
use crate::tensor;

impl Runner {
    /// Has every constant's memory go with it, where constants share the buffer of a file.
    ///
    /// # Errors
    /// `Limit` where memory for a copy of one is short.
    pub fn cut_constants(&mut self) -> Result<()> {
        let values = self.graph.values.iter_mut();
        tensor::cut(values.filter_map(|value| value.constant.as_mut()))
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
            let mut plans = self.plans[index].iter();
            plans.any(|(key, _)| key.is(feeds))
        };
        if !run.shared.options.tune || planned() {
            return Ok(());
        }
        let stage = self.stage(index, feeds);
        let draft = plan::draft(&stage, run, &mut Fallback::default())?;
        let trials = draft.trials(run.shared)?;
        drop(draft);
        run.measure(trials).await
    }

    fn stage<'a>(&'a self, index: usize, feeds: &'a [(ValueId, TensorSpec)]) -> StageInput<'a> {
        StageInput {
            graph: &self.graph,
            stages: &self.stages,
            index,
            live_out: &self.live_out[index],
            runner: self.id,
            feeds,
            lively: &self.lively[index],
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
        feeds: &[(ValueId, TensorSpec)],
        run: &mut Run<'_>,
        raw: RawConstants,
    ) -> Result<&mut PlannedStage> {
        match self.plans[index].iter().position(|(key, _)| key.is(feeds)) {
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
                if self.adapt(index, feeds, run)? {
                    // Who reads the report anew at every revision does not read it at every step of a text.
                    run.shared.followed += 1;
                    run.shared.revision += u64::from(run.shared.followed.is_power_of_two());
                } else {
                    self.plan_anew(index, feeds, run, raw)?;
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
        feeds: &[(ValueId, TensorSpec)],
        run: &mut Run<'_>,
        raw: RawConstants,
    ) -> Result<()> {
        let mut fallback = Fallback::default();
        let again = run.shared.falls_back(raw);
        let planned = loop {
            let draft = plan::draft(&self.stage(index, feeds), run, &mut fallback)?;
            if raw == RawConstants::Drop && !again {
                self.drop_constants();
            }
            let plans = &mut self.plans[index];
            while plans.len() >= run.shared.plans_kept() {
                plans.remove(0);
            }
            let adapts = raw == RawConstants::Keep;
            match run.resize(raw, |run| draft.generate(run, adapts)) {
                Ok(planned) => break planned,
                Err(obstacle) => {
                    let stage = &self.stages.stages[index].nodes;
                    fallback.take(obstacle, stage, !again)?;
                }
            }
        };
        if raw == RawConstants::Drop {
            self.drop_constants();
        }
        self.plans[index].push((Key::of(feeds), planned));
        run.shared.plans.made += 1;
        Ok(())
    }

    /// Lets go of all constants but those that are outputs of the graph.
    fn drop_constants(&mut self) {
        let mut kept = vec![false; self.graph.values.len()];
        self.graph.outputs.iter().for_each(|v| kept[v.0] = true);
        for (value, kept) in self.graph.values.iter_mut().zip(kept) {
            value.constant.take_if(|_| !kept);
        }
    }

    /// Makes the plan for these inputs of one that is kept: of the latest where the inputs have grown a little
    /// since, or of the one nearest to them where no more plans are to be kept. False where there is none, or
    /// where it cannot follow.
    #[inline(never)]
    fn adapt(
        &mut self,
        index: usize,
        feeds: &[(ValueId, TensorSpec)],
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let plans = &self.plans[index];
        let full = plans.len() >= run.shared.plans_kept();
        let from = match plans.last() {
            Some((latest, _)) if latest.grows_to(feeds) => Some(plans.len() - 1),
            Some(_) if full => (0..plans.len()).max_by_key(|&i| plans[i].0.shared_with(feeds)),
            _ => None,
        };
        // What is tuned is measured for its own shapes.
        let Some(from) = from.filter(|_| !run.shared.options.tune) else {
            return Ok(false);
        };
        let (mut key, mut planned) = self.plans[index].remove(from);
        let adaptation = match planned.adaptation(&self.stage(index, feeds), run) {
            Ok(Some(adaptation)) => adaptation,
            other => {
                // A plan that cannot follow for their sake is of no use any more.
                let lively = planned.take_lively();
                if lively.is_empty() {
                    self.plans[index].insert(from, (key, planned));
                }
                self.lively[index].extend(lively);
                return other.map(|_| false);
            }
        };
        let adapted = run.resize(RawConstants::Keep, |run| planned.adapt(adaptation, run));
        let adapted = match adapted {
            // Planned anew, it may go elsewhere.
            Err(obstacle) if obstacle.can_be_avoided() => false,
            adapted => adapted.map_err(Obstacle::error)?,
        };
        if adapted {
            run.shared.plans.adapted += 1;
            key.set(feeds);
            self.plans[index].push((key, planned));
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
            let ctx = InferContext::new(&known, node.outputs.len()).of(&self.graph, node);
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
