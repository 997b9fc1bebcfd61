//! Concrete shape inference, and computing what is known before anything runs.

use super::{Planner, StageInput};
use crate::dim::Dim;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::{InputFact, TensorSpec};
use crate::graph::{Graph, InferContext, Names, Node, NodeId, NodeSpec, ValueId};
use crate::ids::IdSet;
use crate::ops::Custom;
use crate::session::Run;
use crate::tensor::Tensor;

/// Known values up to this size are computed while planning even if no shape depends on them: it
/// is cheaper than a kernel.
const SMALL: usize = 1024;

impl Planner<'_> {
    /// Gives every output of the stage's nodes a spec, and a value where it can be computed now.
    pub(super) fn infer(&mut self, run: &Run<'_>) -> Result<()> {
        let graph = self.input.graph;
        for &id in &self.input.stages.stages[self.input.index].nodes {
            let node = &graph.nodes[id.0];
            let at = |e: Error| e.at(&node.name, node.op.name());
            for v in node.present_inputs() {
                if let Some(constant) = &graph.value(v).constant {
                    let spec = self.specs.entry(v);
                    spec.or_insert_with(|| TensorSpec::of(constant));
                }
            }
            let inputs = self.inputs(id)?;
            let mut outputs = infer_concrete(graph, node, &inputs, run).map_err(at)?;
            let known = known_outputs(&self.input, id, &inputs, &outputs, run).map_err(at)?;
            if let Some(values) = known {
                for (spec, value) in outputs.iter_mut().zip(values) {
                    *spec = TensorSpec::of(&value);
                }
            } else {
                let spec = NodeSpec {
                    name: &node.name,
                    op: node.op.as_ref(),
                    inputs: &inputs,
                    outputs: &outputs,
                };
                if node.op.is_view_for(&spec)
                    && let Some(of) = node.input(0)
                {
                    // A chain of views is one view, however long it is.
                    self.view_of.insert(node.outputs[0], self.root(of));
                }
                self.live.push(id);
            }
            for (v, spec) in node.outputs.iter().zip(outputs) {
                self.specs.insert(*v, spec);
            }
        }
        Ok(())
    }

    /// Forgets nodes whose results nothing needs any more.
    pub(super) fn drop_dead(&mut self) {
        let mut needed: IdSet<ValueId> = IdSet::default();
        needed.extend(self.input.live_out.iter().copied());
        let mut live = Vec::with_capacity(self.live.len());
        for &id in self.live.iter().rev() {
            let node = &self.input.graph.nodes[id.0];
            if node.outputs.iter().any(|o| needed.contains(o)) {
                needed.extend(node.present_inputs());
                live.push(id);
            }
        }
        live.reverse();
        self.live = live;
    }
}

/// What the outputs of a node hold, where that can be said before it runs and is worth it.
///
/// # Errors
/// Those of computing the node.
pub(super) fn known_outputs(
    input: &StageInput,
    id: NodeId,
    inputs: &[Option<TensorSpec>],
    outputs: &[TensorSpec],
    run: &Run<'_>,
) -> Result<Option<Vec<Tensor>>> {
    let node = &input.graph.nodes[id.0];
    let op = node.op.as_ref();
    if let Some(values) = measured(op, inputs, outputs)? {
        return Ok(Some(values));
    }
    let all_known = inputs.iter().flatten().all(|s| s.value.is_some());
    if !all_known || !op.deterministic() {
        return Ok(None);
    }
    let spec = NodeSpec {
        name: &node.name,
        op,
        inputs,
        outputs,
    };
    if op.is_view_for(&spec) {
        let value = inputs.first().and_then(|s| s.as_ref()?.value.clone());
        return value
            .map(|v| Ok(vec![v.reshaped(&outputs[0].shape)?]))
            .transpose();
    }
    let wanted = node.outputs.iter().any(|o| input.stages.wanted[o.0]);
    let bytes = outputs.iter().map(TensorSpec::bytes);
    let small = bytes.fold(0, usize::saturating_add) <= SMALL;
    if !wanted && (!small || input.lively.contains(&id)) {
        return Ok(None);
    }
    match run.evaluate(&spec).transpose() {
        // An operator of the session's may have a kernel on another backend alone.
        Err(e) if op.is::<Custom>() && !wanted && e.code() == ErrorCode::Unsupported => Ok(None),
        computed => computed,
    }
}

/// What an operator says of a shape that is known; `None` where it needs more than that.
fn measured(
    op: &dyn crate::Operator,
    inputs: &[Option<TensorSpec>],
    outputs: &[TensorSpec],
) -> Result<Option<Vec<Tensor>>> {
    if !op.flow().measures() || outputs.len() != 1 {
        return Ok(None);
    }
    let facts = inputs.iter().map(|s| s.as_ref().map(InputFact::from));
    let facts: Vec<_> = facts.collect();
    let dims = op.elements(&InferContext::new(&facts, 1), &vec![None; inputs.len()]);
    let known = |d: Dim| i64::try_from(d.known()?).ok();
    let numbers: Option<Vec<i64>> = dims.and_then(|dims| dims.into_iter().map(known).collect());
    let tensor = numbers.map(|numbers| Tensor::from_slice(&outputs[0].shape, &numbers));
    tensor.transpose().map(|t| t.map(|t| vec![t]))
}

/// What a node gives for these inputs.
///
/// # Errors
/// Those of the operator's inference, and `Shape` where it does not say all.
pub(super) fn infer_concrete(
    graph: &Graph,
    node: &Node,
    inputs: &[Option<TensorSpec>],
    run: &Run<'_>,
) -> Result<Vec<TensorSpec>> {
    let facts = inputs.iter().map(|s| s.as_ref().map(InputFact::from));
    let facts: Vec<_> = facts.collect();
    let outputs = node.op.infer(&InferContext {
        inputs: &facts,
        outputs: node.outputs.len(),
        interrupt: &run.interrupt,
        names: Names::of(graph, node),
    })?;
    if outputs.len() < node.outputs.len() {
        return Err(Error::new(
            ErrorCode::InvalidGraph,
            "the node has more outputs than its operator",
        ));
    }
    outputs
        .iter()
        .take(node.outputs.len())
        .map(|f| match (f.dtype, f.concrete()) {
            (Some(dtype), Some(shape)) => {
                run.shared.check_bytes(dtype, &shape)?;
                Ok(TensorSpec::new(dtype, &shape))
            }
            _ => Err(Error::new(
                ErrorCode::Shape,
                format!("the shape of an output cannot be found: {f}"),
            )),
        })
        .collect()
}
