//! What is planned before the first run.

use std::collections::HashMap;

use super::Runner;
use crate::backend::RawConstants;
use crate::error::Result;
use crate::fact::{Fact, TensorSpec};
use crate::graph::{NodeId, ValueId};
use crate::report::PortReport;
use crate::session::Run;
use crate::session::plan::Obstacle;

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
        self.plan(0, &feeds, run, raw)?;
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

    /// Does as [`Runner::prepare`], with memory for all plans together. Where a backend does not have that, stages are
    /// planned one after the other, and those that do not fit any more go elsewhere.
    ///
    /// # Errors
    /// Those of [`Runner::prepare`].
    pub fn prepare_together(
        &mut self,
        run: &mut Run<'_>,
        inputs: &[Fact],
        raw: RawConstants,
    ) -> Result<()> {
        // The only stage, whose constants are gone when it has its memory.
        if raw == RawConstants::Drop {
            return self.prepare(run, inputs, raw);
        }
        let together = run.resize(raw, |run| {
            self.prepare(run, inputs, raw).map_err(Obstacle::of_all)
        });
        match together {
            Err(obstacle) if obstacle.can_be_avoided() && run.shared.falls_back(raw) => {
                self.forget_plans();
                self.prepare(run, inputs, raw)
            }
            together => together.map_err(Obstacle::error),
        }
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
}
