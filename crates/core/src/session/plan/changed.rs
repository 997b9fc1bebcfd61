//! What becomes of the values of a planned stage with inputs of other shapes.

use super::StageInput;
use super::adapt::Frame;
use super::infer::{infer_concrete, known_outputs};
use crate::error::Result;
use crate::fact::TensorSpec;
use crate::graph::{NodeId, NodeSpec, ValueId};
use crate::ids::IdMap;
use crate::ops::Custom;
use crate::session::Run;

/// A node that reads changed values.
pub(super) struct ChangedNode {
    /// The node's place in the stage.
    pub place: usize,
    pub inputs: Vec<Option<TensorSpec>>,
    pub outputs: Vec<TensorSpec>,
    /// For each input, which of the changed values it is.
    pub reads: Vec<Option<usize>>,
    /// For each output, which of the changed values it is.
    pub writes: Vec<Option<usize>>,
    /// Whether what is known of the outputs depends on more than the inputs' shapes.
    pub by_contents: bool,
    /// What the kernel computes in a run.
    pub operations: f64,
    /// The place of the kernel's change in [`crate::backend::StageChange::kernels`].
    pub kernel: Option<usize>,
}

/// The specs of a stage that are known anew.
pub(super) struct Changed<'a> {
    frame: &'a Frame,
    /// Where each changed value stands in `values`.
    at: IdMap<ValueId, usize>,
    pub values: Vec<(ValueId, TensorSpec)>,
    pub nodes: Vec<ChangedNode>,
}

impl<'a> Changed<'a> {
    /// Infers again what depends on the feeds that are not as before. `None` where the plan could not follow.
    ///
    /// # Errors
    /// Those of inferring shapes, as in planning; `Aborted` where the run is to stop.
    pub fn by(
        frame: &'a Frame,
        feeds: &[(ValueId, TensorSpec)],
        input: &StageInput,
        run: &Run<'_>,
    ) -> Result<Option<Changed<'a>>> {
        let mut changed = Changed {
            frame,
            at: IdMap::default(),
            values: Vec::new(),
            nodes: Vec::new(),
        };
        for (v, spec) in feeds {
            if changed.take(*v, spec).is_none() {
                return Ok(None);
            }
        }
        for (place, &id) in input.nodes().iter().enumerate() {
            let node = &input.graph.nodes[id.0];
            if !node.present_inputs().any(|v| changed.at.contains_key(&v)) {
                continue;
            }
            run.interrupt.check()?;
            let Some(inputs) = changed.all(&node.inputs) else {
                return Ok(None);
            };
            let outputs = inferred(input, id, &inputs, run)?;
            let known = |i: &Option<usize>| i.is_some_and(|i| changed.values[i].1.value.is_some());
            let reads = node.inputs.iter().map(|v| changed.at.get(&(*v)?).copied());
            let reads: Vec<_> = reads.collect();
            let by_contents = reads.iter().any(known)
                || outputs.iter().any(|spec| spec.value.is_some())
                || node.op.is::<Custom>();
            let mut writes = Vec::with_capacity(outputs.len());
            for (v, spec) in node.outputs.iter().zip(&outputs) {
                let Some(at) = changed.take(*v, spec) else {
                    return Ok(None);
                };
                writes.push(at);
            }
            changed.nodes.push(ChangedNode {
                place,
                inputs,
                outputs,
                reads,
                writes,
                by_contents,
                operations: 0.0,
                kernel: None,
            });
        }
        Ok(Some(changed))
    }

    /// The nodes whose outputs are known only to be known anew with every length, where no shape depends on them and a kernel would do.
    pub fn lively(&self, input: &StageInput, run: &Run<'_>) -> Vec<NodeId> {
        let evaluator = &run.shared.evaluator.describe().id;
        // Elsewhere there may be no kernel, or data would cross.
        if (run.shared.backends.iter()).any(|b| b.describe().id != *evaluator) {
            return Vec::new();
        }
        let is_lively = |changed: &&ChangedNode| {
            let id = input.nodes()[changed.place];
            let node = &input.graph.nodes[id.0];
            let spec = NodeSpec {
                name: &node.name,
                op: node.op.as_ref(),
                inputs: &changed.inputs,
                outputs: &changed.outputs,
            };
            let known = changed.outputs.iter().any(|spec| spec.value.is_some());
            let wanted = node.outputs.iter().any(|v| input.stages.wanted[v.0]);
            let costs_nothing = node.op.flow().measures() || node.op.is_view_for(&spec);
            known && !wanted && !costs_nothing && !input.lively.contains(&id)
        };
        let nodes = self.nodes.iter().filter(is_lively);
        nodes.map(|changed| input.nodes()[changed.place]).collect()
    }

    /// Takes what a value is from now on, and says where it stands if that is another than before. `None` where the plan
    /// could not follow.
    fn take(&mut self, v: ValueId, spec: &TensorSpec) -> Option<Option<usize>> {
        let old = self.frame.specs.get(&v)?;
        if old.dtype != spec.dtype || old.value.is_some() != spec.value.is_some() {
            return None;
        }
        if old == spec {
            return Some(None);
        }
        self.values.push((v, spec.clone()));
        self.at.insert(v, self.values.len() - 1);
        Some(Some(self.values.len() - 1))
    }

    fn all(&self, values: &[Option<ValueId>]) -> Option<Vec<Option<TensorSpec>>> {
        let spec = |v: &ValueId| match self.at.get(v) {
            Some(&at) => Some(&self.values[at].1),
            None => self.frame.specs.get(v),
        };
        let each = |v: &Option<ValueId>| match v {
            Some(v) => Some(Some(spec(v)?.clone())),
            None => Some(None),
        };
        values.iter().map(each).collect()
    }
}

/// The specs of a node's outputs, with values where they are known.
///
/// # Errors
/// Those of inferring shapes and of computing the node, with the node's name.
pub(super) fn inferred(
    input: &StageInput,
    id: NodeId,
    inputs: &[Option<TensorSpec>],
    run: &Run<'_>,
) -> Result<Vec<TensorSpec>> {
    let node = &input.graph.nodes[id.0];
    let at = |e: crate::Error| e.at(&node.name, node.op.name());
    let outputs = infer_concrete(input.graph, node, inputs, run).map_err(at)?;
    let known = known_outputs(input, id, inputs, &outputs, run).map_err(at)?;
    Ok(known.map_or(outputs, |values| {
        values.iter().map(TensorSpec::of).collect()
    }))
}
