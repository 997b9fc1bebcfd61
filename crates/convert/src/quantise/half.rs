//! Half precision.

use std::collections::HashSet;

use half::f16;
use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::{Graph, Node, Precision, ValueId};
use kilim_core::ops::Cast;
use kilim_core::passes::retype_everywhere;
use kilim_core::{DType, Tensor};
use kilim_formats::build::GraphBuilder;

use super::{FEWEST, Work};
use crate::rebuild::Given;

/// A node whose large constants are read as `float16`.
pub fn smaller(
    work: &mut Work,
    b: &mut GraphBuilder,
    given: &Given,
) -> Result<Option<Vec<ValueId>>> {
    let planned = given.node.op.value_inputs();
    let mut inputs = given.inputs.to_vec();
    let mut changed = false;
    for (i, input) in inputs.iter_mut().enumerate() {
        let Some(v) = input.filter(|_| !planned.contains(&i)) else {
            continue;
        };
        if let Some(known) = work.made.get(&v) {
            *input = Some(known[0]);
            changed = true;
            continue;
        }
        let tensor = b.constant(v);
        let tensor = tensor.filter(|t| t.dtype() == DType::F32 && t.len() >= FEWEST);
        let Some(tensor) = tensor.map(|t| halved(&t)).transpose()?.flatten() else {
            continue;
        };
        let narrow = b.node_constant("float16", tensor);
        let wide = b.op(Cast::new(DType::F32), &[narrow])?;
        work.made.insert(v, vec![wide]);
        *input = Some(wide);
        changed = true;
    }
    if !changed {
        return Ok(None);
    }
    let (op, outputs) = (given.node.op.clone(), given.node.outputs.len());
    b.apply_shared(op, &inputs, outputs).map(Some)
}

/// The weights as `float16`; `None` where one of them is too large for it.
fn halved(weights: &Tensor) -> Result<Option<Tensor>> {
    let weights = weights.unread();
    let reals = weights.as_slice::<f32>()?;
    let halves: Vec<f16> = reals.iter().map(|&x| f16::from_f32(x)).collect();
    let fits = reals
        .iter()
        .zip(&halves)
        .all(|(x, half)| x.is_finite() == half.is_finite());
    match fits {
        true => Tensor::from_slice(weights.shape(), &halves).map(Some),
        false => Ok(None),
    }
}

/// A graph that computes in `float16`. Inputs and outputs stay as they are; nodes that cannot compute in it stay in `float32`, and their names
/// are given.
///
/// # Errors
/// What shape inference says of the result.
pub fn half_precision(graph: &Graph) -> Result<(Graph, Vec<String>)> {
    let mut stay: HashSet<String> = HashSet::new();
    loop {
        let mut changed = graph.clone();
        let wish = |graph: &Graph, node: &Node| {
            let halves = !stay.contains(&node.name) && may_halve(graph, node);
            halves.then_some(DType::F16)
        };
        match retype_everywhere(&mut changed, &wish) {
            Ok(()) => {
                let mut stay: Vec<String> = stay.into_iter().collect();
                stay.sort();
                return Ok((changed, stay));
            }
            // One more node keeps its type, so that this ends.
            Err(e) if e.code() == ErrorCode::Unsupported => match e.node() {
                Some(node) if stay.insert(node.to_string()) => {}
                _ => return Err(e),
            },
            Err(e) => return Err(e),
        }
    }
}

/// Whether a node computes in the type of its inputs, and some are `float32`.
fn may_halve(graph: &Graph, node: &Node) -> bool {
    let single = |v: ValueId| graph.value(v).fact.dtype == Some(DType::F32);
    node.op.flow().precision == Precision::OfInputs
        && node.op.bodies().is_none()
        && node.present_inputs().any(single)
}
