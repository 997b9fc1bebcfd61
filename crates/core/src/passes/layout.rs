//! Brings convolutions, pooling and their kin to channels-last, between two transposes each. The
//! pass after this one makes neighbours' transposes meet and go.

use super::edit::{inverse, node};
use crate::dim::Shape;
use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::Transpose;

/// Rewrites nodes of rank 3 and 4 in a graph that convolves; others gain nothing by it. Needs
/// inferred facts. True where there was one.
pub fn run(graph: &mut Graph) -> bool {
    let convolves = |n: &Node| n.op.spatial().is_some_and(|spatial| spatial.convolves);
    if !graph.nodes.iter().any(convolves) {
        return false;
    }
    let mut changed = false;
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes) {
        match rewrite(graph, &node, &mut nodes) {
            Some(()) => changed = true,
            None => nodes.push(node),
        }
    }
    graph.nodes = nodes;
    changed
}

fn rewrite(graph: &mut Graph, old: &Node, nodes: &mut Vec<Node>) -> Option<()> {
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
            nodes.push(node(&name, Transpose { perm }, vec![Some(v)], turned));
            inputs[i] = Some(turned);
        }
    }
    let turned = add_permuted(graph, &format!("{}/out", old.name), out, &to_last);
    nodes.push(Node {
        name: old.name.clone(),
        op,
        inputs,
        outputs: vec![turned],
    });
    let name = format!("{}/back", old.name);
    nodes.push(node(
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
