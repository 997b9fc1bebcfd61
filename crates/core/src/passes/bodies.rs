//! Constants that bodies of control flow are given become constants of the body, so that they can
//! be folded, fused and packed there; what a body does not read is not passed at all.

use std::sync::Arc;

use super::infer_graph;
use super::patch::Patch;
use crate::dim::Dim;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId};
use crate::interrupt::Interrupt;
use crate::tensor::Tensor;

/// Applies `change` to the bodies of a node; true where it changed one.
pub fn for_each_body<E>(
    node: &mut Node,
    mut change: impl FnMut(&mut Graph) -> Result<bool, E>,
) -> Result<bool, E> {
    let Some(bodies) = node.op.bodies() else {
        return Ok(false);
    };
    let (mut graphs, mut changed) = (Vec::with_capacity(bodies.graphs.len()), false);
    for graph in bodies.graphs {
        let mut graph = Graph::clone(graph);
        changed |= change(&mut graph)?;
        graphs.push(Arc::new(graph));
    }
    if changed && let Some(op) = node.op.with_bodies(graphs) {
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
    if !has_bodies(graph) {
        return Ok(());
    }
    let mut patch = Patch::forward(graph);
    while let Some(mut node) = patch.next_node() {
        let facts = input_facts(graph, &node, interrupt)?;
        for_each_body(&mut node, |body| {
            let inputs = body.inputs.clone();
            for (v, fact) in inputs.into_iter().zip(&facts) {
                body.value_mut(v).fact = fact.clone();
            }
            infer_graph(body, interrupt)?;
            change(body)?;
            Ok::<_, crate::Error>(true)
        })?;
        patch.push(node);
    }
    patch.finish(graph).map(drop)
}

fn has_bodies(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| node.op.bodies().is_some())
}

/// Moves constants into the bodies that capture them and drops captures that no body reads. True
/// where something changed.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn move_constants(graph: &mut Graph) -> Result<bool> {
    if !has_bodies(graph) {
        return Ok(false);
    }
    let mut patch = Patch::forward(graph);
    while let Some(mut node) = patch.next_node() {
        patch.changed |= move_into(graph, &mut node);
        patch.push(node);
    }
    patch.finish(graph)
}

/// Moves constants that `node` captures into its bodies; true where there were some.
fn move_into(graph: &Graph, node: &mut Node) -> bool {
    let Some(bodies) = node.op.bodies() else {
        return false;
    };
    let first = bodies.captures();
    let place = bodies.place(first);
    let Some(captured) = node.inputs.len().checked_sub(first) else {
        return false;
    };
    if !bodies
        .graphs
        .iter()
        .all(|b| b.inputs.len() == captured + place)
    {
        return false;
    }
    let uses: Vec<Vec<usize>> = bodies.graphs.iter().map(|b| b.use_counts()).collect();
    let read = |at: usize| {
        let mut bodies = bodies.graphs.iter().zip(&uses);
        bodies.any(|(b, uses)| uses[b.inputs[at].0] > 0)
    };
    // For each capture: keep it, or give the body this constant (or nothing) instead.
    let fate: Vec<Option<Option<Tensor>>> = (0..captured)
        .map(|at| {
            let constant = graph.constant(node.input(first + at)).cloned();
            let drop = constant.is_some() || !read(at + place);
            drop.then_some(constant)
        })
        .collect();
    if fate.iter().all(Option::is_none) {
        return false;
    }
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
    if done.is_ok() {
        let mut at = 0;
        node.inputs.retain(|_| {
            let keep = at < first || fate[at - first].is_none();
            at += 1;
            keep
        });
    }
    true
}

/// What is known of the inputs of each body of `node`. Values that go round keep a dimension only where an iteration
/// keeps it.
pub fn input_facts(graph: &Graph, node: &Node, interrupt: &Interrupt) -> Result<Vec<Fact>> {
    let Some(bodies) = node.op.bodies() else {
        return Ok(Vec::new());
    };
    let given = |v: &Option<ValueId>| v.map_or_else(Fact::default, |v| graph.fact(v).clone());
    let given: Vec<Fact> = node.inputs.iter().map(given).collect();
    let mut facts = bodies.facts(&given);
    if let ([body], 1..) = (&bodies.graphs[..], bodies.carried) {
        let first = bodies.place(bodies.steering);
        let from = usize::from(bodies.counted);
        settle(body, &mut facts, [first, from, bodies.carried], interrupt)?;
    }
    Ok(facts)
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
