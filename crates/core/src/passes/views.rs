//! Views of views become one view, and a padding moves behind a view where a convolution waits for
//! it: networks on sequences wrap their convolutions in Unsqueeze and Squeeze.

use std::collections::HashSet;
use std::sync::Arc;

use super::edit::node;
use super::patch::Patch;
use super::transposes::reshape::{groups, literal};
use crate::dim::{Dim, Shape};
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Axes, Graph, Node, ValueId};
use crate::ops::{Conv, Pad, Reshape};

/// Needs inferred facts. True where something changed.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn run(graph: &mut Graph) -> Result<bool> {
    let convolved: HashSet<ValueId> = graph
        .nodes
        .iter()
        .filter(|n| n.op.is::<Conv>())
        .filter_map(|n| n.input(0))
        .collect();
    let mut patch = Patch::start(graph);
    while let Some(mut node) = patch.next_node() {
        if is_view(&node) {
            merge(graph, &mut patch, &mut node);
            if convolved.contains(&node.outputs[0]) {
                pull_pad(graph, &mut patch, &mut node);
            }
        }
        patch.push(node);
    }
    patch.finish(graph)
}

fn is_view(node: &Node) -> bool {
    node.op.flow().axes == Axes::Regrouped && node.outputs.len() == 1
}

fn dims(graph: &Graph, v: ValueId) -> Option<&[Dim]> {
    graph.fact(v).shape.as_ref().map(|s| &s.0[..])
}

/// Makes `node` a Reshape of `source`; false where its shape cannot be written down.
fn reshape(graph: &mut Graph, node: &mut Node, source: ValueId) -> bool {
    let shape = || literal(dims(graph, source)?, dims(graph, node.outputs[0])?);
    let Some(shape) = shape() else { return false };
    let Ok(shape) = graph.add_ints(format!("{}/shape", node.name), &shape) else {
        return false;
    };
    node.op = Arc::new(Reshape { allow_zero: false });
    node.inputs = vec![Some(source), Some(shape)];
    true
}

/// A view of a view looks at what that one looks at.
fn merge(graph: &mut Graph, patch: &mut Patch, node: &mut Node) {
    let source = || {
        let producer = patch.producer(node.input(0)).filter(|p| is_view(p))?;
        producer.input(0)
    };
    if let Some(source) = source()
        && reshape(graph, node, source)
    {
        patch.changed = true;
    }
}

/// The padding that `node` reads comes after it instead.
fn pull_pad(graph: &mut Graph, patch: &mut Patch, view: &mut Node) {
    let moved = || {
        let x = view.input(0)?;
        let (pad, producer) = patch.produced_by::<Pad>(Some(x))?;
        let (from, to) = (dims(graph, x)?, dims(graph, view.outputs[0])?);
        let source = producer.input(0)?;
        let pads = graph.ints(producer.input(1))?;
        let plain = pads.len() == 2 * from.len() && producer.input(3).is_none();
        if !plain || patch.uses(x) > 0 || pads.iter().any(|&p| p < 0) {
            return None;
        }
        let before = dims(graph, source)?;
        let mut shape = to.to_vec();
        let mut turned = vec![0; 2 * to.len()];
        for group in groups(from, to)? {
            for axis in group.from.clone() {
                let (begin, end) = (pads[axis], pads[from.len() + axis]);
                if begin == 0 && end == 0 {
                    continue;
                }
                if group.from.len() != 1 || group.to.len() != 1 {
                    return None;
                }
                let target = group.to.start;
                shape[target] = before[axis].clone();
                turned[target] = begin;
                turned[to.len() + target] = end;
            }
        }
        let value = producer.input(2);
        literal(before, &shape)?;
        Some((pad.clone(), source, shape, turned, value))
    };
    let Some((pad, source, shape, pads, value)) = moved() else {
        return;
    };
    let Ok(pads) = graph.add_ints(format!("{}/pads", view.name), &pads) else {
        return;
    };
    let out = view.outputs[0];
    let fact = Fact {
        dtype: graph.fact(out).dtype,
        shape: Some(Shape(shape)),
        ..Fact::default()
    };
    let unpadded = graph.add_value(format!("{}/unpadded", view.name), fact);
    let mut first = view.clone();
    first.outputs = vec![unpadded];
    if !reshape(graph, &mut first, source) {
        return;
    }
    let mut inputs = vec![Some(unpadded), Some(pads)];
    inputs.extend(value.map(Some));
    let name = format!("{}/Pad", view.name);
    patch.push(first);
    *view = node(&name, pad, inputs, out);
    patch.changed = true;
}
