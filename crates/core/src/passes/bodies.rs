//! Constants that bodies of control flow are given become constants of the body, so that they can
//! be folded, fused and packed there; what a body does not read is not passed at all.

use std::sync::Arc;

use super::infer_graph;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Graph, Node, Operator};
use crate::interrupt::Interrupt;
use crate::ops::{If, Loop, Scan, normalize_axis};
use crate::tensor::Tensor;

/// Applies `change` to the bodies of a node; true where it changed one.
pub fn for_each_body<E>(
    node: &mut Node,
    mut change: impl FnMut(&mut Graph) -> Result<bool, E>,
) -> Result<bool, E> {
    let mut on = |body: &Arc<Graph>| -> Result<(Arc<Graph>, bool), E> {
        let mut body = Graph::clone(body);
        let changed = change(&mut body)?;
        Ok((Arc::new(body), changed))
    };
    let (op, changed): (Arc<dyn Operator>, bool) = if let Some(op) = node.op.downcast_ref::<If>() {
        let (then_body, a) = on(&op.then_body)?;
        let (else_body, b) = on(&op.else_body)?;
        let op = If {
            then_body,
            else_body,
        };
        (Arc::new(op), a | b)
    } else if let Some(op) = node.op.downcast_ref::<Loop>() {
        let (body, changed) = on(&op.body)?;
        (Arc::new(Loop { body, ..op.clone() }), changed)
    } else if let Some(op) = node.op.downcast_ref::<Scan>() {
        let (body, changed) = on(&op.body)?;
        (Arc::new(Scan { body, ..op.clone() }), changed)
    } else {
        return Ok(false);
    };
    if changed {
        node.op = op;
    }
    Ok(changed)
}

/// Applies `change` to the bodies of all nodes, with the facts of what these are given.
pub fn for_each_inferred(
    graph: &mut Graph,
    interrupt: &Interrupt,
    change: &mut dyn FnMut(&mut Graph) -> Result<()>,
) -> Result<()> {
    for i in 0..graph.nodes.len() {
        if graph.nodes[i].op.subgraphs().is_empty() {
            continue;
        }
        let mut facts = input_facts(graph, &graph.nodes[i], interrupt)?.into_iter();
        for_each_body(&mut graph.nodes[i], |body| {
            let inputs = body.inputs.clone();
            for (v, fact) in inputs.into_iter().zip(facts.next().unwrap_or_default()) {
                body.value_mut(v).fact = fact;
            }
            infer_graph(body, interrupt)?;
            change(body)?;
            Ok::<_, crate::Error>(true)
        })?;
    }
    Ok(())
}

/// The first input of the node that is a mere capture, and the input of the body that takes it.
fn captures(node: &Node) -> Option<(usize, usize)> {
    if node.op.is::<If>() {
        return Some((1, 0));
    }
    if let Some(op) = node.op.downcast_ref::<Loop>() {
        let first = 2 + op.carried;
        return Some((first, first));
    }
    let op = node.op.downcast_ref::<Scan>()?;
    let first = op.states + op.scan_inputs;
    Some((first, first))
}

/// Moves constants into the bodies that capture them and drops captures that no body reads. True
/// where something changed.
pub fn move_constants(graph: &mut Graph) -> bool {
    let mut changed = false;
    for i in 0..graph.nodes.len() {
        let node = &graph.nodes[i];
        let Some((first, place)) = captures(node) else {
            continue;
        };
        let fits = node.inputs.len() >= first
            && node
                .op
                .subgraphs()
                .iter()
                .all(|b| b.inputs.len() == node.inputs.len() - first + place);
        if !fits {
            continue;
        }
        let bodies = node.op.subgraphs();
        let uses: Vec<Vec<usize>> = bodies.iter().map(|b| b.use_counts()).collect();
        let read = |at: usize| {
            let mut bodies = bodies.iter().zip(&uses);
            bodies.any(|(b, uses)| uses[b.inputs[at].0] > 0)
        };
        // For each capture: keep it, or give the body this constant (or nothing) instead.
        let fate: Vec<Option<Option<Tensor>>> = (first..node.inputs.len())
            .map(|at| {
                let constant = graph.constant(node.input(at)).cloned();
                let drop = constant.is_some() || !read(at - first + place);
                drop.then_some(constant)
            })
            .collect();
        if fate.iter().all(Option::is_none) {
            continue;
        }
        changed = true;
        let node = &mut graph.nodes[i];
        let done = for_each_body(node, |body| {
            let mut fates = fate.iter();
            let captured = body.inputs.split_off(place);
            for v in captured {
                match fates.next() {
                    Some(Some(constant)) => {
                        let value = body.value_mut(v);
                        if let Some(tensor) = constant {
                            value.fact = Fact::of(tensor);
                        }
                        value.constant = constant.clone();
                    }
                    _ => body.inputs.push(v),
                }
            }
            Ok::<_, std::convert::Infallible>(true)
        });
        if done.is_err() {
            continue;
        }
        let mut at = 0;
        node.inputs.retain(|_| {
            let keep = at < first || fate[at - first].is_none();
            at += 1;
            keep
        });
    }
    changed
}

/// What is known of the inputs of each body of `node`. Carried values keep a dimension only where
/// an iteration keeps it.
pub fn input_facts(graph: &Graph, node: &Node, interrupt: &Interrupt) -> Result<Vec<Vec<Fact>>> {
    let given = |i: usize| {
        node.input(i)
            .map_or_else(Fact::default, |v| graph.fact(v).clone())
    };
    if node.op.is::<If>() {
        let facts: Vec<Fact> = (1..node.inputs.len()).map(given).collect();
        return Ok(vec![facts.clone(), facts]);
    }
    if let Some(op) = node.op.downcast_ref::<Loop>() {
        let mut facts: Vec<Fact> = (0..node.inputs.len()).map(given).collect();
        if let [iteration, condition, ..] = &mut facts[..] {
            *iteration = Fact::fixed(DType::I64, &[]);
            *condition = Fact::fixed(DType::Bool, &[]);
        }
        settle(&op.body, &mut facts, [2, 1, op.carried], interrupt)?;
        return Ok(vec![facts]);
    }
    if let Some(op) = node.op.downcast_ref::<Scan>() {
        let slice = |i: usize| {
            let mut fact = given(i);
            if let Some(shape) = &mut fact.shape {
                let axis = op
                    .input_axes
                    .get(i.wrapping_sub(op.states))
                    .copied()
                    .unwrap_or(0);
                match normalize_axis(axis, shape.rank()) {
                    Ok(axis) => drop(shape.0.remove(axis)),
                    Err(_) => fact.shape = None,
                }
            }
            fact
        };
        let scanned = op.states..op.states + op.scan_inputs;
        let fact = |i: usize| {
            if scanned.contains(&i) {
                slice(i)
            } else {
                given(i)
            }
        };
        let mut facts: Vec<Fact> = (0..node.inputs.len()).map(fact).collect();
        settle(&op.body, &mut facts, [0, 0, op.states], interrupt)?;
        return Ok(vec![facts]);
    }
    Ok(Vec::new())
}

/// Rounds after which all shapes of carried values are forgotten. Each round may forget one dimension more: a chain
/// of values that are handed on from one to the next would take as many rounds as it is long.
const SETTLING: usize = 16;

/// Forgets of `count` carried values, from input `first` and output `from` on, what the body does
/// not keep.
fn settle(
    body: &Graph,
    facts: &mut [Fact],
    [first, from, count]: [usize; 3],
    interrupt: &Interrupt,
) -> Result<()> {
    let mut body = body.clone();
    for round in 0.. {
        if round == SETTLING {
            for fact in facts.iter_mut().skip(first).take(count) {
                fact.shape = None;
            }
        }
        for (&v, fact) in body.inputs.clone().iter().zip(facts.iter()) {
            body.value_mut(v).fact = fact.clone();
        }
        infer_graph(&mut body, interrupt)?;
        let mut stable = true;
        for i in 0..count {
            let (Some(fact), Some(&out)) = (facts.get_mut(first + i), body.outputs.get(from + i))
            else {
                continue;
            };
            let Some(before) = &mut fact.shape else {
                continue;
            };
            match &body.fact(out).shape {
                Some(after) if after.rank() == before.rank() => {
                    for (a, b) in before.0.iter_mut().zip(&after.0) {
                        if *a != Dim::Unknown && a != b {
                            *a = Dim::Unknown;
                            stable = false;
                        }
                    }
                }
                _ => {
                    fact.shape = None;
                    stable = false;
                }
            }
        }
        if stable {
            break;
        }
    }
    Ok(())
}
