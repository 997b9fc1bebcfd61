//! Brings convolutions, pooling and their kin to channels-last, between two transposes each. The
//! pass after this one makes neighbours' transposes meet and go.

use std::sync::Arc;

use super::edit::{inverse, node};
use crate::dim::Shape;
use crate::fact::Fact;
use crate::graph::{Graph, Node, Operator, ValueId};
use crate::ops::{
    AveragePool, Conv, ConvInteger, ConvTranspose, DepthToSpace, LpPool, Lrn, MaxPool, QLinearConv,
    SpaceToDepth, Transpose,
};

/// Rewrites nodes of rank 3 and 4 in a graph that convolves; others gain nothing by it. Needs
/// inferred facts. True where there was one.
pub fn run(graph: &mut Graph) -> bool {
    let convolves = |n: &Node| {
        let op = &*n.op;
        op.is::<Conv>()
            || op.is::<ConvTranspose>()
            || op.is::<QLinearConv>()
            || op.is::<ConvInteger>()
    };
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

/// The operator in channels-last, and which of its inputs are laid out like its first.
fn channels_last(node: &Node) -> Option<(Arc<dyn Operator>, &'static [usize])> {
    let op = &*node.op;
    if let Some(op) = op.downcast_ref::<QLinearConv>() {
        let conv = turned(&op.conv)?;
        return Some((Arc::new(QLinearConv { conv }), &[0]));
    }
    if let Some(op) = op.downcast_ref::<ConvInteger>() {
        // Several factors find their channels last already.
        let requantize = op.requantize.clone();
        let conv = turned(&op.conv)?;
        return Some((Arc::new(ConvInteger { conv, requantize }), &[0]));
    }
    macro_rules! try_as {
        ($($t:ident: $data:expr),*) => {$(
            if let Some(op) = op.downcast_ref::<$t>() {
                const DATA: &[usize] = &$data;
                let turned = || Arc::new($t { channels_last: true, ..op.clone() }) as Arc<dyn Operator>;
                return (!op.channels_last).then(|| (turned(), DATA));
            }
        )*};
    }
    try_as!(
        Conv: [0, 3],
        ConvTranspose: [0],
        MaxPool: [0],
        AveragePool: [0],
        LpPool: [0],
        Lrn: [0],
        DepthToSpace: [0],
        SpaceToDepth: [0]
    );
    None
}

fn turned(conv: &Conv) -> Option<Conv> {
    (!conv.channels_last).then(|| Conv {
        channels_last: true,
        ..conv.clone()
    })
}

fn rewrite(graph: &mut Graph, old: &Node, nodes: &mut Vec<Node>) -> Option<()> {
    // The flat indices of a pooling are those of its own layout.
    let [out] = old.outputs[..] else { return None };
    let (op, data) = channels_last(old)?;
    let rank = graph.fact(old.input(0)?).rank()?;
    if !(3..=4).contains(&rank) {
        return None;
    }
    let to_last: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let to_first = inverse(&to_last);
    let mut inputs = old.inputs.clone();
    for &i in data {
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
