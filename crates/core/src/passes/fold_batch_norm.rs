//! Folds what scales and shifts every channel by constants into the weights of the convolution or
//! matrix product before it, or into a batch normalisation. Batch normalisation on its own becomes a product and a sum where
//! an activation waits that the sum can take along.

use std::collections::HashSet;
use std::sync::Arc;

use super::edit::node;
use super::fuse::as_activation;
use super::patch::Patch;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Operator, ValueId};
use crate::ops::{
    Activation, BatchNorm, Binary, BinaryKind, Conv, ConvTranspose, Gemm, MatMul, Unary, UnaryKind,
};
use crate::tensor::{Tensor, cast_slice_mut};

/// `x * scale + shift`, for each channel.
struct Affine {
    scale: Vec<f64>,
    shift: Vec<f64>,
}

impl Affine {
    /// The function, unless a number of its own is beyond `float32`: products with infinity do not distribute over sums.
    fn finite(self) -> Option<Affine> {
        let mut all = self.scale.iter().chain(&self.shift);
        all.all(|&v| (v as f32).is_finite()).then_some(self)
    }
}

/// Runs on `float32` only: half precision would round the weights differently. Needs inferred
/// facts. True where a node went.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn run(graph: &mut Graph) -> Result<bool> {
    let activated = activated(graph);
    let mut patch = Patch::start(graph);
    while let Some(node) = patch.next_node() {
        let done = folded(graph, &mut patch, &node).is_some()
            || merged(graph, &mut patch, &node).is_some()
            || node.outputs.iter().any(|v| activated.contains(v))
                && split(graph, &mut patch, &node).is_some();
        if !done {
            patch.push(node);
        }
    }
    patch.finish(graph)
}

/// Values that an activation alone reads.
fn activated(graph: &Graph) -> HashSet<ValueId> {
    let uses = graph.use_counts();
    let read = graph.nodes.iter().filter(|n| as_activation(n).is_some());
    read.filter_map(|n| n.input(0))
        .filter(|v| uses[v.0] == 1)
        .collect()
}

fn floats(graph: &Graph, v: Option<ValueId>) -> Option<Vec<f64>> {
    let tensor = graph.constant(v)?;
    (tensor.dtype() == DType::F32).then(|| tensor.to_f64s().ok())?
}

/// The channel axis of what `op` computes, for an output of `rank` dimensions.
fn channel_axis(op: &dyn Operator, rank: usize) -> Option<usize> {
    if let Some(conv) = op.downcast_ref::<Conv>() {
        return Some(if conv.channels_last { rank - 1 } else { 1 });
    }
    if let Some(conv) = op.downcast_ref::<ConvTranspose>() {
        return Some(if conv.channels_last { rank - 1 } else { 1 });
    }
    (op.is::<Gemm>() || op.is::<MatMul>()).then(|| rank.checked_sub(1))?
}

/// A constant that differs along `axis` alone, as one number for each of `channels`.
pub fn per_channel(tensor: &Tensor, rank: usize, axis: usize, channels: usize) -> Option<Vec<f64>> {
    if tensor.dtype() != DType::F32 || tensor.rank() > rank {
        return None;
    }
    let missing = rank - tensor.rank();
    let along_axis = tensor.shape().iter().enumerate().all(|(i, &d)| {
        let expected = if i + missing == axis { channels } else { 1 };
        d == expected
    });
    if tensor.len() != 1 && !(along_axis && axis >= missing) {
        return None;
    }
    let values = tensor.to_f64s().ok()?;
    match values[..] {
        [value] => Some(vec![value; channels]),
        _ => Some(values),
    }
}

fn normalisation(node: &Node) -> Option<&BatchNorm> {
    node.op.downcast_ref::<BatchNorm>()
}

fn batch_norm(graph: &Graph, node: &Node, op: &BatchNorm) -> Option<Affine> {
    let [scale, bias, mean, variance] = [1, 2, 3, 4].map(|i| floats(graph, node.input(i)));
    let (scale, bias, mean, variance) = (scale?, bias?, mean?, variance?);
    let n = scale.len();
    if [&bias, &mean, &variance].iter().any(|v| v.len() != n) {
        return None;
    }
    let epsilon = f64::from(op.epsilon);
    let scale: Vec<f64> = scale
        .iter()
        .zip(&variance)
        .map(|(s, v)| s / (v + epsilon).sqrt())
        .collect();
    let shift = (0..n).map(|i| bias[i] - mean[i] * scale[i]).collect();
    Affine { scale, shift }.finite()
}

/// What `node` does to the value `x` it reads, if that is a scale and a shift for each channel.
fn affine(graph: &Graph, node: &Node, axis: usize, channels: usize) -> Option<(ValueId, Affine)> {
    let rank = graph.fact(node.outputs.first().copied()?).rank()?;
    if let Some(op) = normalisation(node) {
        let own = if op.channels_last { rank - 1 } else { 1 };
        let affine = batch_norm(graph, node, op)?;
        let fits = own == axis && affine.scale.len() == channels;
        return fits.then_some((node.input(0)?, affine));
    }
    if node.op.downcast_ref::<Unary>() == Some(&Unary(UnaryKind::Neg)) {
        let affine = Affine {
            scale: vec![-1.0; channels],
            shift: vec![0.0; channels],
        };
        return Some((node.input(0)?, affine));
    }
    let op = node.op.downcast_ref::<Binary>()?;
    if op.activation != Activation::None {
        return None;
    }
    let (a, b) = (node.input(0)?, node.input(1)?);
    let constant = |v| per_channel(graph.constant(Some(v))?, rank, axis, channels);
    let (x, c, first) = match (constant(a), constant(b)) {
        (None, Some(c)) => (a, c, true),
        (Some(c), None) => (b, c, false),
        _ => return None,
    };
    let ones = || vec![1.0; channels];
    let zeros = || vec![0.0; channels];
    let (scale, shift) = match op.kind {
        BinaryKind::Mul => (c, zeros()),
        BinaryKind::Add => (ones(), c),
        BinaryKind::Sub if first => (ones(), c.iter().map(|v| -v).collect()),
        BinaryKind::Sub => (vec![-1.0; channels], c),
        BinaryKind::Div if first => (c.iter().map(|v| 1.0 / v).collect(), zeros()),
        _ => return None,
    };
    Some((x, Affine { scale, shift }.finite()?))
}

/// Which weight belongs to which output channel: `[outer, channels, inner]`, or for a transposed
/// convolution with groups, the groups outermost.
struct Weights {
    value: ValueId,
    channels: usize,
    inner: usize,
    /// Weights of one group; the channel counts up from group to group.
    group: usize,
    groups: usize,
}

fn weights(graph: &Graph, node: &Node) -> Option<Weights> {
    let value = node.input(1)?;
    let tensor = graph.constant(Some(value))?;
    if tensor.dtype() != DType::F32 {
        return None;
    }
    let shape = tensor.shape();
    let op = &*node.op;
    let all = tensor.len();
    let tail = |from: usize| shape.get(from..).map(|s| s.iter().product::<usize>());
    let (channels, inner, group) = if op.is::<Conv>() {
        (*shape.first()?, tail(1)?, all)
    } else if let Some(conv) = op.downcast_ref::<ConvTranspose>() {
        let each = *shape.get(1)?;
        let channels = each.checked_mul(conv.groups)?;
        (channels, tail(2)?, all.checked_div(conv.groups)?)
    } else if shape.len() == 2 {
        let transposed = op.downcast_ref::<Gemm>().is_some_and(|g| g.transpose_b)
            || op.downcast_ref::<MatMul>().is_some_and(|m| m.transpose_b);
        if transposed {
            (shape[0], shape[1], all)
        } else {
            (shape[1], 1, all)
        }
    } else {
        return None;
    };
    (all > 0 && channels > 0 && inner > 0 && group > 0).then(|| Weights {
        value,
        channels,
        inner,
        group,
        groups: all / group,
    })
}

impl Weights {
    /// The channel of weight `i`.
    fn channel(&self, i: usize) -> usize {
        let each = self.channels / self.groups.max(1);
        i / self.group * each + i / self.inner % each.max(1)
    }

    /// Multiplies weights from number `first` on by the scale of their channel.
    fn scale(&self, first: usize, weights: &mut [f32], scale: &[f64]) {
        let mut at = first;
        let mut rest = weights;
        while !rest.is_empty() {
            let run = (self.inner - at % self.inner).min(rest.len());
            let (weights, others) = rest.split_at_mut(run);
            multiply(weights, scale[self.channel(at)]);
            (at, rest) = (at + run, others);
        }
    }

    /// Scales the weights in `tensor`: in place where nothing else has them, otherwise when they are read.
    fn scaled(self, tensor: &mut Tensor, scale: Vec<f64>) -> Result<()> {
        if tensor.is_unshared() {
            self.scale(0, tensor.make_mut()?, &scale);
            return Ok(());
        }
        let shape = tensor.shape().to_vec();
        *tensor = tensor.later(DType::F32, &shape, move |unscaled, from, to| {
            unscaled.copy_to(from, to)?;
            self.scale(from / size_of::<f32>(), cast_slice_mut(to)?, &scale);
            Ok(())
        })?;
        Ok(())
    }
}

/// A function of its own, which a browser optimises while the first layers are folded.
#[inline(never)]
fn multiply(weights: &mut [f32], scale: f64) {
    let single = scale as f32;
    if single.is_normal() {
        weights.iter_mut().for_each(|w| *w *= single);
    } else {
        // Large weights may make a normal number of what single precision has few digits of, or none.
        let scaled = |w: f32| (f64::from(w) * scale) as f32;
        weights.iter_mut().for_each(|w| *w = scaled(*w));
    }
}

/// Folds `node` into its producer, which takes its place.
fn folded(graph: &mut Graph, patch: &mut Patch, node: &Node) -> Option<()> {
    let [out] = node.outputs[..] else { return None };
    let candidates = [node.input(0), node.input(1)];
    let axis = |v: ValueId| {
        let op = &*patch.producer(Some(v)).filter(|_| patch.uses(v) == 0)?.op;
        // What applies an activation does not scale with its weights.
        op.with_activation(Activation::Relu)?;
        channel_axis(op, graph.fact(v).rank()?)
    };
    let mut candidates = candidates.into_iter().flatten();
    let (source, axis) = candidates.find_map(|v| Some((v, axis(v)?)))?;
    let producer = patch.producer(Some(source))?;
    let rank = graph.fact(source).rank()?;
    if graph.fact(out).rank()? != rank || producer.input(3).is_some() {
        return None;
    }
    let weights = weights(graph, producer)?;
    let channels = weights.channels;
    let (x, affine) = affine(graph, node, axis, channels)?;
    if x != source {
        return None;
    }
    let gemm = producer.op.downcast_ref::<Gemm>();
    let bias = match producer.input(2) {
        None => vec![0.0; channels],
        // The bias of a Gemm broadcasts to its output; others are vectors.
        Some(v) if gemm.is_some() => per_channel(graph.constant(Some(v))?, rank, axis, channels)?,
        bias => floats(graph, bias).filter(|b| b.len() == channels)?,
    };
    let beta = gemm.map_or(1.0, |g| f64::from(g.beta));
    let bias: Vec<f32> = (0..channels)
        .map(|c| (bias[c] * beta * affine.scale[c] + affine.shift[c]) as f32)
        .collect();
    let bias = Tensor::from_slice(&[channels], &bias).ok()?;
    let with_beta = gemm.map(|g| Gemm {
        beta: 1.0,
        ..g.clone()
    });
    let mut scaled = None;
    if affine.scale.iter().any(|&s| s != 1.0) {
        let alone = patch.uses(weights.value) == 1;
        let constant = graph.value_mut(weights.value).constant.as_mut()?;
        if alone {
            weights.scaled(constant, affine.scale).ok()?;
        } else {
            let mut copy = constant.clone();
            weights.scaled(&mut copy, affine.scale).ok()?;
            scaled = Some(copy);
        }
    }
    let mut producer = patch.take(source)?;
    if let Some(gemm) = with_beta {
        producer.op = Arc::new(gemm);
    }
    if let Some(scaled) = scaled {
        let name = format!("{}/weights", producer.name);
        producer.inputs[1] = Some(graph.add_constant(name, scaled));
    }
    let name = format!("{}/bias", producer.name);
    producer.inputs.resize(3, None);
    producer.inputs[2] = Some(graph.add_constant(name, bias));
    producer.outputs = vec![out];
    patch.push(producer);
    Some(())
}

/// Makes `node` part of the scale and the bias of the batch normalisation before it.
fn merged(graph: &mut Graph, patch: &mut Patch, node: &Node) -> Option<()> {
    let [out] = node.outputs[..] else { return None };
    let norm = |v: ValueId| {
        let before = patch.producer(Some(v)).filter(|_| patch.uses(v) == 0)?;
        let op = normalisation(before).filter(|_| before.outputs.len() == 1)?;
        Some((v, before, op))
    };
    let mut candidates = [node.input(0), node.input(1)].into_iter().flatten();
    let (source, before, op) = candidates.find_map(norm)?;
    let rank = graph.fact(source).rank()?;
    if !graph.is_f32(source) || graph.fact(out).rank()? != rank {
        return None;
    }
    let axis = if op.channels_last { rank - 1 } else { 1 };
    let channels = batch_norm(graph, before, op)?.scale.len();
    let (x, affine) = affine(graph, node, axis, channels)?;
    if x != source {
        return None;
    }
    let [scale, bias] = [1, 2].map(|i| floats(graph, before.input(i)));
    let (scale, bias) = (scale?, bias?);
    let both = (0..channels).map(|c| {
        (
            scale[c] * affine.scale[c],
            bias[c] * affine.scale[c] + affine.shift[c],
        )
    });
    let (scale, shift) = both.unzip();
    let both = Affine { scale, shift }.finite()?;
    let tensor = |values: Vec<f64>| {
        let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
        Tensor::from_slice(&[channels], &values).ok()
    };
    let (scale, bias) = (tensor(both.scale)?, tensor(both.shift)?);
    let mut all = patch.take(source)?;
    for (i, what, tensor) in [(1, "scale", scale), (2, "bias", bias)] {
        all.inputs[i] = Some(graph.add_constant(format!("{}/{what}", all.name), tensor));
    }
    all.outputs = vec![out];
    patch.push(all);
    Some(())
}

/// Batch normalisation that nothing took up becomes a product and a sum.
fn split(graph: &mut Graph, patch: &mut Patch, norm: &Node) -> Option<()> {
    let op = normalisation(norm)?;
    let [out] = norm.outputs[..] else { return None };
    let x = norm.input(0)?;
    let rank = graph.fact(x).rank()?;
    if !graph.is_f32(x) {
        return None;
    }
    let affine = batch_norm(graph, norm, op)?;
    let mut shape = vec![affine.scale.len()];
    if !op.channels_last {
        shape.resize(rank.checked_sub(1)?, 1);
    }
    let tensor = |values: &[f64]| {
        let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
        Tensor::from_slice(&shape, &values).ok()
    };
    let (scale, shift) = (tensor(&affine.scale)?, tensor(&affine.shift)?);
    let scale = graph.add_constant(format!("{}/scale", norm.name), scale);
    let shift = graph.add_constant(format!("{}/shift", norm.name), shift);
    let fact = graph.fact(x).clone();
    let scaled = graph.add_value(format!("{}/scaled", norm.name), fact);
    let product = Binary::new(BinaryKind::Mul);
    let name = format!("{}/Mul", norm.name);
    patch.push(node(&name, product, vec![Some(x), Some(scale)], scaled));
    let sum = Binary::new(BinaryKind::Add);
    patch.push(node(&norm.name, sum, vec![Some(scaled), Some(shift)], out));
    patch.changed = true;
    Some(())
}
