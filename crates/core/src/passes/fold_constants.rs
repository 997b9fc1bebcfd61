//! Computes at load time what does not depend on the inputs, and removes what changes nothing.

use std::sync::Arc;

use super::Evaluator;
use super::known_dims::KnownDims;
use super::patch::Patch;
use crate::builtin;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{ErrorCode, Result};
use crate::fact::{Fact, InputFact, TensorSpec};
use crate::graph::{Graph, InferContext, Names, Node, NodeSpec, NodeView, ValueId};
use crate::ops::{ConstantOfShape, DequantizeLinear, If, Reshape};
use crate::tensor::{Tensor, byte_count};

/// A constant may grow to this many bytes, or to the size of what it is computed from: enough for
/// the weights of a layer, which backends pack only where they are constant.
const GROWTH: usize = 16 << 20;

/// Folds nodes whose inputs are constants, and shapes that are known; DequantizeLinear is left to [`dequantize`].
/// Needs inferred facts. True where a node went.
///
/// # Errors
/// `Aborted` where loading is to stop, `Limit` where memory is short, and those of [`Patch::finish`].
pub fn run(graph: &mut Graph, evaluate: &Evaluator) -> Result<bool> {
    let mut known = KnownDims::default();
    fold(graph, |graph, node| {
        known.follow(graph, node);
        let mut tensors = from_dims(graph, &known, node);
        if tensors.is_none() && !dequantizes(node) {
            tensors = compute(graph, node, evaluate)?;
        }
        let settled = tensors.is_none() && settle_reshape(graph, &known, node)?;
        Ok((tensors, settled))
    })
}

/// Folds DequantizeLinear of constants, whose quantised numbers [`super::quantized`] wants to see as they are. Needs
/// inferred facts. True where a node went.
///
/// # Errors
/// `Aborted` where loading is to stop, and those of [`Patch::finish`].
pub fn dequantize(graph: &mut Graph, evaluate: &Evaluator) -> Result<bool> {
    fold(graph, |graph, node| match dequantizes(node) {
        true => Ok((compute(graph, node, evaluate)?, false)),
        false => Ok((None, false)),
    })
}

fn dequantizes(node: &Node) -> bool {
    node.op.is::<DequantizeLinear>()
}

/// Puts constants in the place of nodes. `of` gives the outputs of a node, and says whether it changed the node
/// instead. True where there was any change.
fn fold(
    graph: &mut Graph,
    mut of: impl FnMut(&mut Graph, &mut Node) -> Result<(Option<Vec<Tensor>>, bool)>,
) -> Result<bool> {
    let mut patch = Patch::forward(graph);
    while let Some(mut node) = patch.next_node() {
        let (tensors, changed) = of(graph, &mut node)?;
        patch.changed |= changed;
        let Some(tensors) = tensors else {
            patch.push(node);
            continue;
        };
        for (&v, tensor) in node.outputs.iter().zip(tensors) {
            let value = graph.value_mut(v);
            value.fact = Fact::of(&tensor);
            value.constant = Some(tensor);
        }
        patch.changed = true;
    }
    patch.finish(graph)
}

/// Puts the body that an `If` with a constant condition runs in its place. True where there was one.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn branches(graph: &mut Graph) -> Result<bool> {
    if !graph
        .nodes
        .iter()
        .any(|node| chosen_body(graph, node).is_some())
    {
        return Ok(false);
    }
    remove(graph, |graph, node, patch| {
        let body = chosen_body(graph, node)?;
        inline(graph, node, body, patch);
        Some(())
    })
}

/// Removes nodes that only pass on their input. Needs inferred facts. True where a node went.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn identities(graph: &mut Graph) -> Result<bool> {
    if !graph
        .nodes
        .iter()
        .any(|node| passes_on(graph, node).is_some())
    {
        return Ok(false);
    }
    remove(graph, |graph, node, patch| {
        patch.replace(node.outputs[0], passes_on(graph, node)?);
        Some(())
    })
}

/// Removes the nodes that `replace` has put others in the place of, or other values. True where there was one.
fn remove(
    graph: &mut Graph,
    replace: impl Fn(&mut Graph, &Node, &mut Patch) -> Option<()>,
) -> Result<bool> {
    let mut patch = Patch::forward(graph);
    while let Some(node) = patch.next_node() {
        match replace(graph, &node, &mut patch) {
            Some(()) => patch.changed = true,
            None => patch.push(node),
        }
    }
    patch.finish(graph)
}

/// The outputs of a node all of whose inputs are constants. What else fails here leaves the node in the graph: it is
/// computed by each run, which reports what fails again. `Limit` is no exception, as a run frees what it computes with.
///
/// # Errors
/// `Aborted` where loading is to stop.
fn compute(graph: &Graph, node: &Node, evaluate: &Evaluator) -> Result<Option<Vec<Tensor>>> {
    evaluate.interrupt.check()?;
    let foldable = node.op.deterministic() && !builtin::runs(graph, node);
    let Some(specs) = foldable.then(|| constants(graph, node)).flatten() else {
        return Ok(None);
    };
    let known: Vec<Option<InputFact>> = specs
        .iter()
        .map(|s| s.as_ref().map(InputFact::from))
        .collect();
    let facts = node.op.infer(&InferContext {
        inputs: &known,
        outputs: node.outputs.len(),
        interrupt: evaluate.interrupt,
        names: Names::of(graph, node),
    });
    let Some(outputs) = unless_aborted(facts)?.and_then(|facts| small(node, &specs, &facts)) else {
        return Ok(None);
    };
    if let ([out], Some(fill)) = (&outputs[..], node.op.downcast_ref::<ConstantOfShape>()) {
        let filled = Tensor::filled(&out.shape, &fill.value);
        return Ok(filled.ok().map(|tensor| vec![tensor]));
    }
    let spec = NodeSpec {
        name: &node.name,
        op: &*node.op,
        inputs: &specs,
        outputs: &outputs,
    };
    // Both constants then have one memory.
    if node.op.is_view_for(&spec)
        && let (
            [out],
            Some(Some(TensorSpec {
                value: Some(value), ..
            })),
        ) = (&outputs[..], specs.first())
    {
        return Ok(value.reshaped(&out.shape).ok().map(|tensor| vec![tensor]));
    }
    let tensors = match (evaluate.compute)(&spec) {
        Some(tensors) => unless_aborted(tensors)?,
        None => None,
    };
    Ok(tensors.filter(|tensors| tensors.len() == node.outputs.len()))
}

/// Whatever does not stop loading is no error.
fn unless_aborted<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.code() == ErrorCode::Aborted => Err(e),
        Err(_) => Ok(None),
    }
}

/// The inputs of a node if all are constants.
fn constants(graph: &Graph, node: &Node) -> Option<Vec<Option<TensorSpec>>> {
    let input = |v: &Option<ValueId>| match v {
        Some(v) => {
            let constant = graph.value(*v).constant.as_ref()?;
            Some(Some(TensorSpec::of(constant)))
        }
        None => Some(None),
    };
    node.inputs.iter().map(input).collect()
}

/// The outputs of a node, where they are not much larger than its inputs.
fn small(
    node: &Node,
    inputs: &[Option<TensorSpec>],
    facts: &[crate::fact::Fact],
) -> Option<Vec<TensorSpec>> {
    let read = inputs.iter().flatten().filter_map(|s| s.value.as_ref());
    let read = read.fold(0usize, |n, t| n.saturating_add(t.byte_len()));
    let mut outputs = Vec::with_capacity(node.outputs.len());
    for fact in facts.iter().take(node.outputs.len()) {
        let (dtype, shape) = (fact.dtype?, fact.concrete()?);
        if byte_count(dtype, &shape).ok()? > read.max(GROWTH) {
            return None;
        }
        outputs.push(TensorSpec::new(dtype, &shape));
    }
    Some(outputs)
}

/// The value of shape arithmetic whose dimensions are all known.
fn from_dims(graph: &Graph, known: &KnownDims, node: &Node) -> Option<Vec<Tensor>> {
    let [out] = node.outputs[..] else { return None };
    if node
        .present_inputs()
        .all(|v| graph.value(v).constant.is_some())
    {
        return None;
    }
    let dims = known.get(graph, out)?;
    let dims: Vec<i64> = dims
        .iter()
        .map(|d| d.known().and_then(|n| i64::try_from(n).ok()))
        .collect::<Option<_>>()?;
    let shape: &[usize] = match graph.fact(out).rank()? {
        0 if dims.len() == 1 => &[],
        1 => &[dims.len()],
        _ => return None,
    };
    let tensor = match graph.fact(out).dtype? {
        DType::I64 => Tensor::from_slice(shape, &dims),
        DType::I32 => {
            let narrow: Vec<i32> = dims
                .iter()
                .map(|&d| i32::try_from(d).ok())
                .collect::<Option<_>>()?;
            Tensor::from_slice(shape, &narrow)
        }
        _ => return None,
    };
    tensor.ok().map(|t| vec![t])
}

/// Gives Reshape a constant shape where at most one dimension of it is open. A name that the data does not have stays
/// computed: inference would lose it.
fn settle_reshape(graph: &mut Graph, known: &KnownDims, node: &mut Node) -> Result<bool> {
    let (Some(op), Some(shape)) = (node.op.downcast_ref::<Reshape>(), node.input(1)) else {
        return Ok(false);
    };
    if graph.value(shape).constant.is_some() {
        return Ok(false);
    }
    let Some(dims) = known.get(graph, shape) else {
        return Ok(false);
    };
    let from = node.input(0).and_then(|x| graph.fact(x).shape.as_ref());
    let settled: Option<Vec<i64>> = dims
        .iter()
        .enumerate()
        .map(|(i, d)| match d {
            Dim::Known(0) => (!op.allow_zero).then_some(0),
            Dim::Known(n) => i64::try_from(*n).ok(),
            Dim::Unknown => Some(-1),
            d if from.is_some_and(|s| s.0.get(i) == Some(d)) => Some(0),
            d if from.is_some_and(|s| s.0.contains(d)) => Some(-1),
            _ => None,
        })
        .collect();
    let Some(settled) = settled.filter(|s| s.iter().filter(|&&d| d == -1).count() <= 1) else {
        return Ok(false);
    };
    let name = format!("{}/shape", node.name);
    node.inputs[1] = Some(graph.add_ints(name, &settled)?);
    node.op = Arc::new(Reshape { allow_zero: false });
    Ok(true)
}

/// The value that a node with one useful output only passes on.
fn passes_on(graph: &Graph, node: &Node) -> Option<ValueId> {
    let ([_], Some(source)) = (&node.outputs[..], node.input(0)) else {
        return None;
    };
    let passes = NodeView::new(graph, node).passes_on();
    passes.then_some(source)
}

/// The body that an `If` with a constant condition runs.
fn chosen_body<'a>(graph: &Graph, node: &'a Node) -> Option<&'a Graph> {
    let op = node.op.downcast_ref::<If>()?;
    let condition = graph.constant(node.input(0))?;
    let yes = *condition.as_slice::<u8>().ok()?.first()? != 0;
    let body = if yes { &op.then_body } else { &op.else_body };
    let fits =
        body.inputs.len() + 1 >= node.inputs.len() && body.outputs.len() == node.outputs.len();
    fits.then_some(&**body)
}

/// Puts the nodes of a body in the place of the node that would run it.
fn inline(graph: &mut Graph, node: &Node, body: &Graph, patch: &mut Patch) {
    let mut place: Vec<Option<ValueId>> = vec![None; body.values.len()];
    for (i, v) in body.inputs.iter().enumerate() {
        place[v.0] = node.input(i + 1);
    }
    let mut map = |v: ValueId| -> ValueId {
        *place[v.0].get_or_insert_with(|| {
            graph.values.push(body.values[v.0].clone());
            ValueId(graph.values.len() - 1)
        })
    };
    for inner in &body.nodes {
        patch.push(Node {
            name: inner.name.clone(),
            op: inner.op.clone(),
            inputs: inner.inputs.iter().map(|v| v.map(&mut map)).collect(),
            outputs: inner.outputs.iter().map(|&v| map(v)).collect(),
        });
    }
    for (&out, &v) in node.outputs.iter().zip(&body.outputs) {
        patch.replace(out, map(v));
    }
}
