//! Brings convolutions, pooling and their kin to channels-last, between two transposes each. The
//! pass after this one makes neighbours' transposes meet and go.

use super::edit::{inverse, node};
use super::patch::Patch;
use crate::dim::Shape;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::Transpose;

/// Rewrites nodes of rank 3 and 4 in a graph that convolves; others gain nothing by it. Needs
/// inferred facts. True where there was one.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn run(graph: &mut Graph) -> Result<bool> {
    let convolves = |n: &Node| n.op.spatial().is_some_and(|spatial| spatial.convolves);
    if !graph.nodes.iter().any(convolves) {
        return Ok(false);
    }
    let mut patch = Patch::forward(graph);
    while let Some(node) = patch.next_node() {
        match rewrite(graph, &node, &mut patch) {
            Some(()) => patch.changed = true,
            None => patch.push(node),
        }
    }
    patch.finish(graph)
}

fn rewrite(graph: &mut Graph, old: &Node, patch: &mut Patch) -> Option<()> {
    // The flat indices of a pooling are those of its own layout.
    let [out] = old.outputs[..] else { return None };
    let spatial = old.op.spatial()?;
    let op = spatial.channels_last?;
    let rank = graph.fact(old.input(0)?).rank()?;
    if !(3..=4).contains(&rank) {
        return None;
    }
    let to_last: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let to_first = inverse(&to_last);
    let mut inputs = old.inputs.clone();
    for &i in spatial.data {
        if let Some(Some(v)) = inputs.get(i).copied() {
            let name = format!("{}/in{i}", old.name);
            let turned = add_permuted(graph, &name, v, &to_last);
            let perm = to_last.clone();
            patch.push(node(&name, Transpose { perm }, vec![Some(v)], turned));
            inputs[i] = Some(turned);
        }
    }
    let turned = add_permuted(graph, &format!("{}/out", old.name), out, &to_last);
    patch.push(Node {
        name: old.name.clone(),
        op,
        inputs,
        outputs: vec![turned],
    });
    let name = format!("{}/back", old.name);
    patch.push(node(
        &name,
        Transpose { perm: to_first },
        vec![Some(turned)],
        out,
    ));
    Some(())
}

/// A value like `v` with its dimensions in another order.
pub fn add_permuted(graph: &mut Graph, name: &str, v: ValueId, perm: &[usize]) -> ValueId {
    let fact = permuted_fact(graph.fact(v), perm);
    graph.add_value(format!("{name}:0"), fact)
}

/// A fact with its dimensions in another order.
pub fn permuted_fact(fact: &Fact, perm: &[usize]) -> Fact {
    let shape = fact
        .shape
        .as_ref()
        .filter(|s| s.rank() == perm.len())
        .map(|s| Shape(perm.iter().map(|&p| s.0[p].clone()).collect()));
    Fact {
        dtype: fact.dtype,
        shape,
        ..Fact::default()
    }
}
