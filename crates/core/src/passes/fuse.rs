//! Lets convolutions, products and sums do what comes right after them: bias, residual, activation.

use std::sync::Arc;

use super::fold_batch_norm::per_channel;
use super::patch::Patch;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Operator, ValueId};
use crate::ops::{
    Activation, Binary, BinaryKind, Cast, Conv, Gather, GatherCast, MatMul, Pad, PadMode, Padding,
    Unary, UnaryKind,
};
use crate::tensor::Tensor;

/// Fuses in `float32`; half precision would round in between. Needs inferred facts. True where a
/// node went.
fn fuse(graph: &mut Graph, rule: impl Fn(&mut Graph, &mut Patch, Node) -> Unfused) -> Result<bool> {
    let mut patch = Patch::start(graph);
    while let Some(node) = patch.next_node() {
        if let Some(node) = rule(graph, &mut patch, node) {
            patch.push(node);
        }
    }
    patch.finish(graph)
}

/// A rule hands the node back unless it fused it into another, which then stands in its place.
type Unfused = Option<Node>;

/// Takes activations into the nodes that they read.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn activations(graph: &mut Graph) -> Result<bool> {
    fuse(graph, activation)
}

/// Takes sums with vectors into matrix products.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn biases(graph: &mut Graph) -> Result<bool> {
    fuse(graph, bias)
}

/// Takes constant factors into matrix products.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn scales(graph: &mut Graph) -> Result<bool> {
    fuse(graph, scale)
}

/// Takes sums into the convolutions and products that make a part of them.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn residuals(graph: &mut Graph) -> Result<bool> {
    fuse(graph, residual)
}

/// Takes products with other values into the matrix products that make a part of them.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn factors(graph: &mut Graph) -> Result<bool> {
    fuse(graph, factor)
}

/// Takes paddings into convolutions.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn paddings(graph: &mut Graph) -> Result<bool> {
    fuse(graph, |graph, patch, mut node| {
        pad(graph, patch, &mut node);
        Some(node)
    })
}

/// Takes casts of indices into gathers.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn index_casts(graph: &mut Graph) -> Result<bool> {
    fuse(graph, |graph, patch, mut node| {
        index_cast(graph, patch, &mut node);
        Some(node)
    })
}

/// The activation that a node computes, if it is one.
pub fn as_activation(node: &Node) -> Option<Activation> {
    let unary = node.op.downcast_ref::<Unary>()?;
    Some(match unary.0 {
        UnaryKind::Relu => Activation::Relu,
        UnaryKind::Clip { min, max } => Activation::Clip {
            min: min as f32,
            max: max as f32,
        },
        UnaryKind::LeakyRelu { alpha } => Activation::LeakyRelu { alpha },
        UnaryKind::Sigmoid => Activation::Sigmoid,
        UnaryKind::Tanh => Activation::Tanh,
        UnaryKind::HardSwish => Activation::HardSwish,
        UnaryKind::HardSigmoid { alpha, beta } => Activation::HardSigmoid { alpha, beta },
        UnaryKind::Swish { alpha: 1.0 } => Activation::Silu,
        _ => return None,
    })
}

fn activation(graph: &mut Graph, patch: &mut Patch, node: Node) -> Unfused {
    let fused = || {
        let activation = as_activation(&node)?;
        let x = node
            .input(0)
            .filter(|&x| patch.uses(x) == 0 && graph.is_f32(x))?;
        let producer = patch.producer(Some(x))?;
        // A factor comes behind the activation, not before it.
        let factor = producer.op.factor().and_then(|i| producer.input(i));
        let op = producer.op.with_activation(activation)?;
        factor.is_none().then_some((x, op))
    };
    let Some((x, op)) = fused() else {
        return Some(node);
    };
    let Some(mut producer) = patch.take(x) else {
        return Some(node);
    };
    producer.op = op;
    producer.outputs = node.outputs;
    patch.push(producer);
    None
}

/// A constant vector added to a matrix product.
fn bias(graph: &mut Graph, patch: &mut Patch, node: Node) -> Unfused {
    let fused = || {
        let op = node.op.downcast_ref::<Binary>()?;
        let (a, b) = (node.input(0)?, node.input(1)?);
        let product = |v: ValueId| {
            let (product, producer) = patch.produced_by::<MatMul>(Some(v))?;
            let free = producer.input(2).is_none() && product.activation == Activation::None;
            (free && patch.uses(v) == 0 && graph.is_f32(v)).then(|| product.clone())
        };
        let (x, c, product) = match (product(a), product(b)) {
            (Some(p), _) => (a, b, p),
            (None, Some(p)) => (b, a, p),
            _ => return None,
        };
        let shape = graph.fact(x).shape.as_ref()?;
        let width = shape.0.last()?.known()?;
        let rank = shape.rank();
        let values = per_channel(graph.constant(Some(c))?, rank, rank - 1, width)?;
        let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
        let product = MatMul {
            activation: op.activation,
            ..product
        };
        let bias = Tensor::from_slice(&[width], &values).ok()?;
        (op.kind == BinaryKind::Add).then_some((x, bias, product))
    };
    let Some((x, bias, product)) = fused() else {
        return Some(node);
    };
    let Some(mut producer) = patch.take(x) else {
        return Some(node);
    };
    let bias = graph.add_constant(format!("{}/bias", producer.name), bias);
    producer.inputs.resize(2, None);
    producer.inputs.push(Some(bias));
    producer.op = Arc::new(product);
    producer.outputs = node.outputs;
    patch.push(producer);
    None
}

/// A matrix product times a constant.
fn scale(graph: &mut Graph, patch: &mut Patch, node: Node) -> Unfused {
    let fused = || {
        let op = node.op.downcast_ref::<Binary>()?;
        let (a, b) = (node.input(0)?, node.input(1)?);
        let (x, c) = match (op.kind, graph.scalar(Some(a)), graph.scalar(Some(b))) {
            (BinaryKind::Mul, None, Some(c)) => (a, c),
            (BinaryKind::Mul, Some(c), None) => (b, c),
            (BinaryKind::Div, None, Some(c)) if c != 0.0 => (a, 1.0 / c),
            _ => return None,
        };
        // A constant of more dimensions would add dimensions to the result.
        let same_rank = graph.fact(x).rank()? == graph.fact(*node.outputs.first()?).rank()?;
        let (product, producer) = patch.produced_by::<MatMul>(Some(x))?;
        let free = producer.input(2).is_none() && product.activation == Activation::None;
        let ok = free && same_rank && patch.uses(x) == 0 && graph.is_f32(x);
        let product = MatMul {
            alpha: Some(product.alpha.unwrap_or(1.0) * c as f32),
            activation: op.activation,
            ..product.clone()
        };
        ok.then_some((x, product))
    };
    let Some((x, product)) = fused() else {
        return Some(node);
    };
    let Some(mut producer) = patch.take(x) else {
        return Some(node);
    };
    producer.op = Arc::new(product);
    producer.outputs = node.outputs;
    patch.push(producer);
    None
}

/// What a sum or a product with another value of the same shape becomes in the node that makes one of both.
struct Joined {
    /// What that node gives, and the input that takes the other value.
    x: ValueId,
    input: usize,
    other: ValueId,
    op: Arc<dyn Operator>,
}

/// `joins` tells for a node's operator, and the activation of the sum or product, which input takes the other value, and what
/// the operator is then.
fn joined(
    graph: &Graph,
    patch: &Patch,
    node: &Node,
    kind: BinaryKind,
    joins: impl Fn(&Arc<dyn Operator>, Activation) -> Option<(usize, Arc<dyn Operator>)>,
) -> Option<Joined> {
    let op = node.op.downcast_ref::<Binary>()?;
    let (a, b) = (node.input(0)?, node.input(1)?);
    let (left, right) = (&graph.fact(a).shape, &graph.fact(b).shape);
    let shape = left.as_ref().filter(|s| !s.0.contains(&Dim::Unknown))?;
    if op.kind != kind || right.as_ref() != Some(shape) || a == b {
        return None;
    }
    let with = |x: ValueId, other: ValueId| {
        let producer = patch.producer(Some(x))?;
        let (input, op) = joins(&producer.op, op.activation)?;
        let position = patch.position(x)?;
        let free = [producer.op.addend(), producer.op.factor()];
        let free = free
            .into_iter()
            .flatten()
            .all(|i| producer.input(i).is_none());
        let fits = free && patch.uses(x) == 0 && graph.is_f32(x);
        fits.then_some((
            position,
            Joined {
                x,
                input,
                other,
                op,
            },
        ))
    };
    // Of two nodes the later one: what the other gives is there by then.
    match (with(a, b), with(b, a)) {
        (Some((p, left)), Some((q, right))) => Some(if p > q { left } else { right }),
        (left, right) => left.or(right).map(|(_, joined)| joined),
    }
}

fn join(patch: &mut Patch, node: Node, joined: Option<Joined>) -> Unfused {
    let Some(joined) = joined else {
        return Some(node);
    };
    let Some(mut producer) = patch.take(joined.x) else {
        return Some(node);
    };
    let inputs = producer.inputs.len().max(joined.input + 1);
    producer.inputs.resize(inputs, None);
    producer.inputs[joined.input] = Some(joined.other);
    producer.op = joined.op;
    producer.outputs = node.outputs;
    patch.push(producer);
    None
}

/// The sum of what a node makes and another value of the same shape.
fn residual(graph: &mut Graph, patch: &mut Patch, node: Node) -> Unfused {
    let joined = joined(graph, patch, &node, BinaryKind::Add, |op, activation| {
        Some((op.addend()?, op.with_activation(activation)?))
    });
    join(patch, node, joined)
}

/// The product of what a node makes and another value of the same shape.
fn factor(graph: &mut Graph, patch: &mut Patch, node: Node) -> Unfused {
    let joined = joined(graph, patch, &node, BinaryKind::Mul, |op, activation| {
        let input = op.factor().filter(|_| activation == Activation::None)?;
        Some((input, op.clone()))
    });
    join(patch, node, joined)
}

/// Takes the cast of `float32` indices into the gather that reads them: networks trained with
/// Keras take tokens as numbers.
fn index_cast(graph: &Graph, patch: &mut Patch, node: &mut Node) {
    let fused = || {
        let gather = node.op.downcast_ref::<Gather>()?;
        let (cast, producer) = patch.produced_by::<Cast>(node.input(1))?;
        let source = producer.input(0).filter(|&v| graph.is_f32(v))?;
        matches!(cast.to, DType::I32 | DType::I64).then(|| (source, GatherCast(gather.clone())))
    };
    let Some((source, gather)) = fused() else {
        return;
    };
    node.inputs[1] = Some(source);
    node.op = Arc::new(gather);
    patch.changed = true;
}

/// Takes a padding with zeros into the convolution that reads it.
fn pad(graph: &Graph, patch: &mut Patch, node: &mut Node) {
    let fused = || {
        let conv = node.op.downcast_ref::<Conv>()?;
        let x = node.input(0)?;
        let (pad, producer) = patch.produced_by::<Pad>(Some(x))?;
        let zero = producer
            .input(2)
            .is_none_or(|v| graph.scalar(Some(v)) == Some(0.0));
        let rank = graph.fact(x).rank()?;
        if pad.mode != PadMode::Constant || !zero || producer.input(3).is_some() {
            return None;
        }
        let pads = graph
            .ints(producer.input(1))
            .filter(|p| p.len() == 2 * rank)?;
        let n = rank.checked_sub(2)?;
        let mut own = match &conv.padding {
            Padding::Explicit(own) if own.len() == 2 * n => own.clone(),
            Padding::Valid => vec![0; 2 * n],
            _ => return None,
        };
        let first = if conv.channels_last { 1 } else { 2 };
        for (i, &p) in pads.iter().enumerate() {
            let p = usize::try_from(p).ok()?;
            let (end, axis) = (i / rank, i % rank);
            match axis.checked_sub(first) {
                Some(axis) if axis < n => {
                    own[end * n + axis] = own[end * n + axis].checked_add(p)?
                }
                _ if p == 0 => {}
                _ => return None,
            }
        }
        let conv = Conv {
            padding: Padding::Explicit(own),
            ..conv.clone()
        };
        Some((producer.input(0)?, conv))
    };
    let Some((x, conv)) = fused() else { return };
    node.inputs[0] = Some(x);
    node.op = Arc::new(conv);
    patch.changed = true;
}
