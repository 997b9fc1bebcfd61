//! Half precision becomes single precision inside the graph, where a backend does not compute in
//! it. Inputs and outputs of the model keep their types, and so does the rounding of a Cast that
//! the model asks for.

use std::sync::Arc;

use super::bodies::for_each_body;
use super::edit::node;
use super::patch::Patch;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Precision, Value, ValueId};
use crate::ops::Cast;

/// Widens every value of a type for which `narrow` is true. Needs inferred facts. True where there was one.
///
/// # Errors
/// `Limit` where a constant cannot be widened for want of memory, and those of [`Patch::finish`].
pub fn run(graph: &mut Graph, narrow: &dyn Fn(DType) -> bool) -> Result<bool> {
    if kept_in_values(graph, narrow) {
        return Ok(false);
    }
    widen(graph, narrow, true)
}

/// True where tensors that would be widened may stand in sequences: these keep their types.
fn kept_in_values(graph: &Graph, narrow: &dyn Fn(DType) -> bool) -> bool {
    let held = |v: &Value| !v.fact.kind.is_tensor() && v.fact.dtype.is_none_or(narrow);
    let bodies = graph.nodes.iter().flat_map(|n| n.op.subgraphs());
    graph.values.iter().any(held) || bodies.into_iter().any(|body| kept_in_values(body, narrow))
}

/// `edges`: the inputs and outputs of this graph are the model's and keep their types.
fn widen(graph: &mut Graph, narrow: &dyn Fn(DType) -> bool, edges: bool) -> Result<bool> {
    let dtypes: Vec<Option<DType>> = graph
        .values
        .iter()
        .map(|v| v.fact.dtype.filter(|&d| narrow(d)))
        .collect();
    let narrowed = |v: ValueId| dtypes.get(v.0).copied().flatten();
    let mut patch = Patch::forward(graph);
    patch.changes_types(!edges);
    patch.changed = dtypes.iter().any(Option::is_some);
    let mut is_input = vec![false; dtypes.len()];
    graph.inputs.iter().for_each(|v| is_input[v.0] = edges);
    // What stands for an input in single precision.
    let mut wide_inputs: Vec<Option<ValueId>> = vec![None; dtypes.len()];
    for i in 0..dtypes.len() {
        let v = ValueId(i);
        if narrowed(v).is_none() {
            continue;
        }
        if is_input[i] {
            let wide = wide_like(graph, v);
            let name = graph.value(wide).name.clone();
            patch.push(node(&name, Cast::new(DType::F32), vec![Some(v)], wide));
            wide_inputs[i] = Some(wide);
            continue;
        }
        let value = graph.value_mut(v);
        value.fact.dtype = Some(DType::F32);
        if let Some(tensor) = value.constant.take() {
            value.constant = Some(tensor.widened()?);
        }
    }
    while let Some(mut n) = patch.next_node() {
        let bits = n.op.flow().precision == Precision::Bits;
        for slot in n.inputs.iter_mut().flatten().filter(|_| !bits) {
            if let Some(&Some(wide)) = wide_inputs.get(slot.0) {
                *slot = wide;
            }
        }
        patch.changed |= for_each_body(&mut n, |body| widen(body, narrow, false))?;
        if bits {
            keep_bits(graph, n, &narrowed, &mut patch);
            continue;
        }
        keep_meaning(graph, &mut n, &narrowed, &mut patch);
        patch.push(n);
    }
    if edges {
        for i in 0..graph.outputs.len() {
            let v = graph.outputs[i];
            let Some(to) = narrowed(v).filter(|_| !is_input[v.0]) else {
                continue;
            };
            let mut fact = graph.fact(v).clone();
            fact.dtype = Some(to);
            let name = format!("{}/narrow", graph.value(v).name);
            let out = graph.add_value(name.clone(), fact);
            patch.push(node(&name, Cast::new(to), vec![Some(v)], out));
            graph.outputs[i] = out;
        }
    }
    patch.finish(graph)
}

/// A new value like `v`, in single precision.
fn wide_like(graph: &mut Graph, v: ValueId) -> ValueId {
    let mut fact = graph.fact(v).clone();
    fact.dtype = Some(DType::F32);
    let name = format!("{}/wide", graph.value(v).name);
    graph.add_value(name, fact)
}

/// Operators that name a type give the wide one; a Cast rounds to the narrow type first.
fn keep_meaning(
    graph: &mut Graph,
    n: &mut Node,
    narrowed: &dyn Fn(ValueId) -> Option<DType>,
    patch: &mut Patch,
) {
    let Some(to) = n.outputs.first().and_then(|&v| narrowed(v)) else {
        return;
    };
    match n.op.flow().precision {
        Precision::OfInputs | Precision::Bits => {}
        Precision::Named => {
            if let Some(op) = n.op.in_precision(DType::F32) {
                n.op = op;
            }
        }
        Precision::Rounding => {
            n.op = Arc::new(Cast::new(DType::F32));
            n.inputs.truncate(1);
            if n.input(0).and_then(narrowed) != Some(to) {
                let mut fact = graph.fact(n.outputs[0]).clone();
                fact.dtype = Some(to);
                let name = format!("{}/rounded", n.name);
                let rounded = graph.add_value(name.clone(), fact);
                patch.push(node(&name, Cast::new(to), n.inputs.clone(), rounded));
                n.inputs[0] = Some(rounded);
            }
        }
    }
}

/// Bits are those of the narrow type: a BitCast gets and gives it, with conversions around it.
fn keep_bits(
    graph: &mut Graph,
    mut n: Node,
    narrowed: &dyn Fn(ValueId) -> Option<DType>,
    patch: &mut Patch,
) {
    let narrow = |graph: &mut Graph, like: ValueId, dtype: DType| {
        let mut fact = graph.fact(like).clone();
        fact.dtype = Some(dtype);
        graph.add_value(format!("{}/bits", n.name), fact)
    };
    let (x, y) = (n.input(0), n.outputs[0]);
    if let Some(x) = x
        && let Some(from) = narrowed(x).filter(|_| graph.fact(x).dtype == Some(DType::F32))
    {
        let bits = narrow(graph, x, from);
        patch.push(node(&n.name, Cast::new(from), vec![Some(x)], bits));
        n.inputs[0] = Some(bits);
    }
    let mut widening = None;
    if let Some(to) = narrowed(y) {
        let bits = narrow(graph, y, to);
        widening = Some(node(&n.name, Cast::new(DType::F32), vec![Some(bits)], y));
        n.outputs[0] = bits;
    }
    patch.push(n);
    widening.into_iter().for_each(|node| patch.push(node));
}
