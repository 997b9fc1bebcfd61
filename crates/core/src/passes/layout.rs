//! Brings convolutions, pooling and their kin to channels-last, between two transposes each. The
//! pass after this one makes neighbours' transposes meet and go.

use std::sync::Arc;

use super::edit::{inverse, node};
use super::patch::Patch;
use crate::backend::{Backend, DataLayout, Refusal};
use crate::dim::Shape;
use crate::error::Result;
use crate::fact::{Cost, Fact, TensorSpec};
use crate::graph::{Graph, Node, NodeId, NodeSpec, Operator, ValueId};
use crate::ids::IdSet;
use crate::ops::Transpose;

/// Which spatial operators are brought to channels-last.
pub enum Layout<'a> {
    /// All of them, where this is channels-last.
    Every(DataLayout),
    /// The nodes that the function names. It is asked when the graph is otherwise as it will run, with inferred facts, and for
    /// each body of control flow.
    Chosen(&'a dyn Fn(&Graph) -> Result<IdSet<NodeId>>),
}

/// Rewrites nodes of rank 3 and 4 in a graph that then convolves on channels-last data; others gain nothing by it. Needs
/// inferred facts. True where there was one.
///
/// # Errors
/// Those of [`Patch::finish`], and of choosing.
pub fn run(graph: &mut Graph, layout: &Layout) -> Result<bool> {
    let convolves = |n: &Node| n.op.spatial().is_some_and(|spatial| spatial.convolves);
    if !graph.nodes.iter().any(convolves) {
        return Ok(false);
    }
    let chosen = match layout {
        Layout::Every(DataLayout::ChannelsLast) => None,
        Layout::Every(_) => return Ok(false),
        Layout::Chosen(choose) => Some(choose(graph)?),
    };
    let is_chosen = |i: usize| chosen.as_ref().is_none_or(|list| list.contains(&NodeId(i)));
    let mut nodes = graph.nodes.iter().enumerate();
    if !nodes.any(|(i, n)| convolves(n) && is_chosen(i)) {
        return Ok(false);
    }
    let mut patch = Patch::forward(graph);
    for i in 0.. {
        let Some(node) = patch.next_node() else {
            break;
        };
        let rewritten = match is_chosen(i) {
            true => rewrite(graph, &node, &mut patch),
            false => None,
        };
        match rewritten {
            Some(()) => patch.changed = true,
            None => patch.push(node),
        }
    }
    patch.finish(graph)
}

/// What a spatial node is on channels-last data.
pub struct Turned {
    op: Arc<dyn Operator>,
    /// Inputs that are laid out like the output.
    data: &'static [usize],
    /// For each dimension of the data, the one of channels-first data that it is.
    to_last: Vec<usize>,
}

impl Turned {
    /// `None` where the node has no such form, or its rank is another than 3 and 4.
    pub fn of(graph: &Graph, node: &Node) -> Option<Turned> {
        // The flat indices of a pooling are those of its own layout.
        let [_] = node.outputs[..] else { return None };
        let spatial = node.op.spatial()?;
        let rank = graph.fact(node.input(0)?).rank()?;
        (3..=4).contains(&rank).then_some(())?;
        Some(Turned {
            op: spatial.channels_last?,
            data: spatial.data,
            to_last: [0].into_iter().chain(2..rank).chain([1]).collect(),
        })
    }

    /// Whether a backend runs the node in this form; `first` is the node on channels-first data.
    ///
    /// # Errors
    /// Why it does not.
    pub fn supported(&self, first: &NodeSpec, backend: &dyn Backend) -> Result<Cost, Refusal> {
        let turn = |spec: &TensorSpec| {
            let shape = self.to_last.iter().map(|&d| spec.shape.get(d).copied());
            match shape.collect::<Option<Vec<usize>>>() {
                Some(shape) => TensorSpec::new(spec.dtype, &shape).named(&spec.name),
                None => spec.clone(),
            }
        };
        let mut inputs = first.inputs.to_vec();
        for &i in self.data {
            if let Some(spec) = inputs.get_mut(i) {
                *spec = spec.as_ref().map(turn);
            }
        }
        let outputs: Vec<TensorSpec> = first.outputs.iter().map(turn).collect();
        backend.supports(&NodeSpec {
            name: first.name,
            op: self.op.as_ref(),
            inputs: &inputs,
            outputs: &outputs,
        })
    }
}

fn rewrite(graph: &mut Graph, old: &Node, patch: &mut Patch) -> Option<()> {
    let [out] = old.outputs[..] else { return None };
    let Turned { op, data, to_last } = Turned::of(graph, old)?;
    let to_first = inverse(&to_last);
    let mut inputs = old.inputs.clone();
    for &i in data {
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
