//! Moves bytes in the place of real numbers: DequantizeLinear goes behind what only moves elements,
//! where it meets the QuantizeLinear that follows.

use std::sync::Arc;

use super::super::patch::Patch;
use super::super::transposes::permutation;
use super::{Operand, Target};
use crate::graph::{Graph, Node, NodeView, ValueId};
use crate::ops::{Concat, DequantizeLinear, normalize_axis};

/// Lets `node` work on what its DequantizeLinear reads, and puts the DequantizeLinear in its place.
pub fn sink(graph: &mut Graph, patch: &mut Patch, node: &mut Node) {
    if !moves(graph, node) || node.outputs.len() != 1 || !graph.is_f32(node.outputs[0]) {
        return;
    }
    let several = node.op.flow().takes_several();
    let count = if several { node.inputs.len() } else { 1 };
    let operands: Option<Vec<Operand>> = node.inputs[..count]
        .iter()
        .map(|&v| Operand::of(graph, patch, v?))
        .collect();
    let Some(operands) = operands else {
        return;
    };
    let Some((first, rest)) = operands.split_first() else {
        return;
    };
    let alike = |o: &Operand| o.dtype == first.dtype && o.parameters == first.parameters;
    if !rest.iter().all(alike) {
        return;
    }
    let axis = match first.parameters.one() {
        Some(_) => first.parameters.axis,
        None => match moved_axis(graph, node, first) {
            Some(axis) => axis,
            None => return,
        },
    };
    let out = node.outputs[0];
    let name = format!("{}/quantised", node.name);
    let mut fact = graph.fact(out).clone();
    fact.dtype = Some(first.dtype);
    let moved = graph.add_value(name.clone(), fact);
    let mut inputs = node.inputs.clone();
    for (slot, operand) in inputs.iter_mut().zip(&operands) {
        *slot = Some(operand.numbers);
    }
    patch.push(Node {
        name,
        op: node.op.clone(),
        inputs,
        outputs: vec![moved],
    });
    node.op = Arc::new(DequantizeLinear { axis, block: 0 });
    node.inputs = vec![Some(moved), Some(first.scale)];
    node.inputs.extend(first.zero.map(Some));
    patch.changed = true;
}

/// True where each element of the output is one of the data, whichever element type they have.
pub fn moves(graph: &Graph, node: &Node) -> bool {
    NodeView::new(graph, node).selects()
}

/// The axis of several scales behind a transpose.
fn moved_axis(graph: &Graph, node: &Node, operand: &Operand) -> Option<i64> {
    let perm = permutation(node, graph.fact(operand.numbers).rank()?)?;
    let axis = normalize_axis(operand.parameters.axis, perm.len()).ok()?;
    perm.iter().position(|&p| p == axis).map(|i| i as i64)
}

/// Lets each part of a Concat be quantised before they are put together, where all of them are real
/// numbers of bytes: `node`, which quantised the whole, then is the Concat.
pub fn lift(graph: &mut Graph, patch: &mut Patch, node: &mut Node) {
    let parts = || {
        let target = Target::of(graph, node)?;
        let (op, concat) = patch.produced_by::<Concat>(Some(target.real))?;
        let quantised =
            |v: &Option<ValueId>| v.is_some_and(|v| Operand::of_bytes(graph, patch, v).is_some());
        let all = patch.uses(target.real) == 0 && concat.inputs.iter().all(quantised);
        all.then(|| (op.clone(), concat.inputs.clone(), target.dtype))
    };
    let Some((op, mut parts, dtype)) = parts() else {
        return;
    };
    for (i, part) in parts.iter_mut().enumerate() {
        let Some(real) = *part else { continue };
        let name = format!("{}/{i}", node.name);
        let mut fact = graph.fact(real).clone();
        fact.dtype = Some(dtype);
        let quantised = graph.add_value(name.clone(), fact);
        let mut inputs = node.inputs.clone();
        inputs[0] = Some(real);
        patch.push(Node {
            name,
            op: node.op.clone(),
            inputs,
            outputs: vec![quantised],
        });
        *part = Some(quantised);
    }
    node.op = Arc::new(op);
    node.inputs = parts;
    patch.changed = true;
}
