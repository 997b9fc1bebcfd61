//! Finds attention that a file spells out: a softmax of products, and its product with values.

use std::sync::Arc;

use super::edit::{is_identity, node};
use super::patch::Patch;
use super::patterns::Finder;
use crate::dim::{Dim, Shape};
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::{
    Activation, Attention, BinaryKind, MatMul, Softmax, SoftmaxKind, Squeeze, Transpose, Unsqueeze,
    normalize_axis,
};
use crate::tensor::Tensor;

/// Puts Attention in the place of `float32` nodes that spell it out, on queries, keys and values of three or four dimensions,
/// where nothing else reads what stands between them. A mask that is added stays as it is, and keys and values are read before
/// their heads are repeated for the query's. Needs inferred facts.
/// True where it found one.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn run(graph: &mut Graph) -> Result<bool> {
    let mut patch = Patch::start(graph);
    while let Some(node) = patch.next_node() {
        let finder = Finder {
            graph,
            patch: &patch,
        };
        match Spelled::of(&finder, &node) {
            Some(spelled) => {
                patch.changed = true;
                spelled.push(graph, &mut patch, &node)?;
            }
            None => patch.push(node),
        }
    }
    patch.finish(graph)
}

/// What attention is computed of.
struct Spelled {
    query: ValueId,
    key: ValueId,
    /// The order of axes in which the keys are `[.., keys, size]`, where they are not so already.
    turned: Option<Vec<usize>>,
    value: ValueId,
    bias: Option<ValueId>,
    scale: f64,
    rank: usize,
}

impl Spelled {
    /// What the attention that ends in `node` is computed of.
    fn of(g: &Finder, node: &Node) -> Option<Spelled> {
        let plain = MatMul::default();
        let last = as_product(node).filter(|(product, _)| **product == plain)?;
        let [weights, value] = last.1;
        let (softmax, behind) = g.patch.produced_by::<Softmax>(Some(weights))?;
        let rank = g
            .graph
            .fact(weights)
            .rank()
            .filter(|rank| *rank == 3 || *rank == 4)?;
        let along_last = normalize_axis(softmax.axis, rank).ok()? == rank - 1;
        let usual = softmax.kind == SoftmaxKind::Softmax && softmax.beta == 1.0;
        let alone = g.patch.uses(weights) == 0;
        if !(along_last && usual && alone && g.graph.is_f32(value) && g.graph.is_f32(weights)) {
            return None;
        }
        let (scores, bias) = masked(g, behind.input(0)?)?;
        let (products, factor) = match g.scaled(scores) {
            Some((x, factor)) if like(g, x, scores) && read_once(g, scores) => (x, factor),
            _ => (scores, 1.0),
        };
        let (product, [query, key]) = as_product(g.patch.producer(Some(products))?)?;
        if !read_once(g, products) || product.activation != Activation::None {
            return None;
        }
        fits(g, [query, key, value])?;
        let own = f64::from(product.alpha.unwrap_or(1.0));
        let mut spelled = Spelled {
            query,
            key,
            turned: None,
            value,
            bias,
            scale: factor * own,
            rank,
        };
        spelled.query = spelled.unscaled(g, query);
        spelled.unturned(g, !product.transpose_b)?;
        spelled.unrepeated(g);
        ((spelled.scale as f32).is_finite()).then_some(spelled)
    }

    /// What `v` is a multiple of; the scale takes the factor.
    fn unscaled(&mut self, g: &Finder, mut v: ValueId) -> ValueId {
        while let Some((x, factor)) = g.scaled(v).filter(|(x, _)| like(g, *x, v)) {
            self.scale *= factor;
            v = x;
        }
        v
    }

    /// Finds the keys as `[.., keys, size]`, without a factor, where they are `[.., size, keys]` now if `swapped`.
    fn unturned(&mut self, g: &Finder, swapped: bool) -> Option<()> {
        self.key = self.unscaled(g, self.key);
        if !swapped {
            return Some(());
        }
        let (transpose, behind) = g.patch.produced_by::<Transpose>(Some(self.key))?;
        let mut perm = transpose.perm.clone();
        let last = perm.len().checked_sub(1).filter(|n| *n > 1)?;
        perm.swap(last - 1, last);
        self.key = behind.input(0)?;
        self.turned = (!is_identity(&perm)).then_some(perm);
        if self.turned.is_none() {
            self.key = self.unscaled(g, self.key);
        }
        Some(())
    }

    /// Reads keys and values before their heads are repeated, where both are repeated as often: query head `h` then reads
    /// key head `h / times`, as the operator has it.
    fn unrepeated(&mut self, g: &Finder) {
        if self.turned.is_some() {
            return;
        }
        let [key, value] = [self.key, self.value].map(|v| g.repeated_heads(v));
        if let (Some(key), Some(value)) = (key, value)
            && key.times == value.times
        {
            (self.key, self.value) = (key.heads, value.heads);
        }
    }

    /// Puts the operator in the place of `last`.
    ///
    /// # Errors
    /// `Limit` where there is no memory.
    fn push(self, graph: &mut Graph, patch: &mut Patch, last: &Node) -> Result<()> {
        let name = &last.name;
        let mut inputs = [self.query, self.key, self.value];
        if let Some(perm) = self.turned {
            let turned = graph.add_value(format!("{name}/key"), Fact::default());
            let op = Transpose { perm };
            patch.push(node(
                &format!("{name}/key"),
                op,
                vec![Some(self.key)],
                turned,
            ));
            inputs[1] = turned;
        }
        let op = Attention {
            scale: self.scale as f32,
            ..Attention::default()
        };
        let all = |inputs: [ValueId; 3]| {
            let inputs = inputs.into_iter().map(Some);
            let bias = self.bias.map(Some);
            inputs.chain(bias).collect::<Vec<_>>()
        };
        if self.rank == 4 {
            patch.push(Node {
                op: Arc::new(op),
                inputs: all(inputs),
                ..last.clone()
            });
            return Ok(());
        }
        // As the heads of one batch.
        let axis = Tensor::from_slice(&[1], &[0i64])?;
        let axis = graph.add_constant(format!("{name}/axis"), axis);
        for (x, what) in inputs.iter_mut().zip(["query", "keys", "value"]) {
            let name = format!("{name}/{what}");
            let whole = graph.add_value(name.clone(), Fact::default());
            patch.push(node(&name, Unsqueeze, vec![Some(*x), Some(axis)], whole));
            *x = whole;
        }
        let whole = graph.add_value(format!("{name}/heads"), Fact::default());
        patch.push(node(name, op, all(inputs), whole));
        let out = last.outputs[0];
        let inputs = vec![Some(whole), Some(axis)];
        patch.push(node(&format!("{name}/apart"), Squeeze, inputs, out));
        Ok(())
    }
}

/// A product without a bias, and its factors.
fn as_product(node: &Node) -> Option<(&MatMul, [ValueId; 2])> {
    let product = node.op.downcast_ref::<MatMul>()?;
    let factors = [node.input(0)?, node.input(1)?];
    node.input(2).is_none().then_some((product, factors))
}

/// Whether the only reader of `v` is the node behind it in the chain.
fn read_once(g: &Finder, v: ValueId) -> bool {
    g.patch.uses(v) == 1
}

/// Whether both have as many dimensions: a factor of more would have added some.
fn like(g: &Finder, a: ValueId, b: ValueId) -> bool {
    let ranks = [a, b].map(|v| g.graph.fact(v).rank());
    ranks[0].is_some() && ranks[0] == ranks[1]
}

/// The scores before a mask is added, and the mask.
fn masked(g: &Finder, x: ValueId) -> Option<(ValueId, Option<ValueId>)> {
    if !read_once(g, x) {
        return None;
    }
    let Some((a, b)) = g.binary(x, BinaryKind::Add) else {
        return Some((x, None));
    };
    let scores = |v: ValueId| {
        let product = |v| g.patch.produced_by::<MatMul>(Some(v)).is_some();
        product(v) || g.scaled(v).is_some_and(|(x, _)| product(x))
    };
    let (scores, mask) = match (scores(a), scores(b)) {
        (true, false) => (a, b),
        (false, true) => (b, a),
        _ => return None,
    };
    let shapes = (&g.graph.fact(scores).shape, &g.graph.fact(mask).shape);
    let (Some(whole), Some(part)) = shapes else {
        return None;
    };
    (g.graph.is_f32(mask) && repeats(part, whole)).then_some((scores, Some(mask)))
}

/// Whether `part` broadcasts to `whole` whatever its open dimensions are.
fn repeats(part: &Shape, whole: &Shape) -> bool {
    let dims = part.0.iter().rev().zip(whole.0.iter().rev());
    let fits = |(part, whole): (&Dim, &Dim)| *part == Dim::Known(1) || part.same(whole);
    part.rank() <= whole.rank() && dims.into_iter().all(fits)
}

/// Holds the leading dimensions of query, key and value against what the operator takes: one batch, and the heads of the query
/// or one.
fn fits(g: &Finder, all: [ValueId; 3]) -> Option<()> {
    /// The dimensions before the last three, and the one behind these.
    fn lead(shape: &Shape) -> Option<(&[Dim], &Dim)> {
        let (lead, _) = shape.0.split_last_chunk::<2>()?;
        let (heads, batch) = lead.split_last()?;
        Some((batch, heads))
    }
    let [query, key, value] = all.map(|v| g.graph.fact(v).shape.as_ref().and_then(lead));
    let (query, key, value) = (query?, key?, value?);
    let batch = |other: &[Dim]| {
        let alike = query.0.iter().zip(other).all(|(a, b)| a.same(b));
        alike && query.0.len() == other.len()
    };
    let heads = key.1.same(value.1) && (key.1.same(query.1) || *key.1 == Dim::Known(1));
    (heads && batch(key.0) && batch(value.0)).then_some(())
}
