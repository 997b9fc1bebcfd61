//! Normalisation.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BatchNorm, BinaryKind, GroupNorm, InstanceNorm, LayerNorm, Lrn, ReduceKind, RmsNorm, UnaryKind,
};
use kilim_core::tensor::Tensor;

use crate::build::number;
use crate::pnnx::import::Import;
use crate::pnnx::invalid;
use crate::pnnx::layer::Layer;

/// Factors or biases of a norm; `default` for all where it has none.
fn affine(
    imp: &mut Import,
    layer: &Layer,
    (name, place): (&str, usize),
    (x, shape, default): (ValueId, &[usize], f64),
) -> Result<ValueId> {
    if let Some(weights) = imp.optional_weights(layer, name, place)? {
        return Ok(weights);
    }
    let dtype = imp.dtype(x).unwrap_or(DType::F32);
    let tensor = Tensor::filled(shape, &number(default, dtype)?)?;
    Ok(imp.node_constant(name, tensor))
}

fn channels(imp: &Import, x: ValueId) -> Result<usize> {
    let known = imp.known_shape(x).and_then(|shape| shape.0.get(1)?.known());
    known.ok_or_else(|| unsupported("an open number of channels"))
}

fn epsilon(layer: &Layer) -> Result<f32> {
    Ok(layer.float("eps", 1e-5)? as f32)
}

/// Operands of the function stand in the order of PyTorch's arguments.
pub fn batch_norm(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let mean = imp.weights(layer, "running_mean", 1)?;
    let variance = imp.weights(layer, "running_var", 2)?;
    let shape = imp
        .shape(mean)
        .ok_or_else(|| unsupported("an open number of channels"))?;
    let scale = affine(imp, layer, ("weight", 3), (x, &shape, 1.0))?;
    let bias = affine(imp, layer, ("bias", 4), (x, &shape, 0.0))?;
    let norm = BatchNorm {
        epsilon: epsilon(layer)?,
        channels_last: false,
    };
    imp.op(norm, &[x, scale, bias, mean, variance])
}

/// A norm by the numbers of the data itself. Means that were kept in training are those of a batch norm.
pub fn instance_norm(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    if layer.flag("track_running_stats", false)? {
        return batch_norm(imp, layer);
    }
    let x = layer.x()?;
    let shape = [channels(imp, x)?];
    let scale = affine(imp, layer, ("weight", 1), (x, &shape, 1.0))?;
    let bias = affine(imp, layer, ("bias", 2), (x, &shape, 0.0))?;
    let epsilon = epsilon(layer)?;
    imp.op(InstanceNorm { epsilon }, &[x, scale, bias])
}

pub fn group_norm(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let shape = [channels(imp, x)?];
    let scale = affine(imp, layer, ("weight", 1), (x, &shape, 1.0))?;
    let bias = affine(imp, layer, ("bias", 2), (x, &shape, 0.0))?;
    let norm = GroupNorm {
        groups: layer.positive("num_groups", 0)?,
        epsilon: epsilon(layer)?,
    };
    if imp.rank(x)? > 2 {
        return imp.op(norm, &[x, scale, bias]);
    }
    let x = imp.unsqueeze(x, &[2])?;
    let y = imp.op(norm, &[x, scale, bias])?;
    imp.squeeze(y, &[2])
}

/// The dimensions that are normalised, the innermost ones.
fn innermost(layer: &Layer) -> Result<(i64, Vec<usize>)> {
    let axes = layer.ints("normalized_shape")?.unwrap_or_default().len();
    if axes == 0 {
        return Err(invalid("the argument `normalized_shape` is missing"));
    }
    let shape = layer.positives("normalized_shape", axes, 1)?;
    Ok((-(axes as i64), shape))
}

pub fn layer_norm(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let (axis, shape) = innermost(layer)?;
    let scale = affine(imp, layer, ("weight", 1), (x, &shape, 1.0))?;
    let bias = affine(imp, layer, ("bias", 2), (x, &shape, 0.0))?;
    let epsilon = epsilon(layer)?;
    imp.op(LayerNorm { axis, epsilon }, &[x, scale, bias])
}

/// PyTorch takes the epsilon of the element type where none is given.
pub fn rms_norm(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let (axis, shape) = innermost(layer)?;
    let scale = affine(imp, layer, ("weight", 1), (x, &shape, 1.0))?;
    let own = match imp.dtype(x) {
        Some(DType::F16) => f64::from(half::f16::EPSILON),
        Some(DType::BF16) => f64::from(half::bf16::EPSILON),
        Some(DType::F64) => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    let epsilon = layer.float("eps", own)? as f32;
    imp.op(RmsNorm { axis, epsilon }, &[x, scale])
}

pub fn lrn(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let norm = Lrn {
        size: layer.positive("size", 0)?,
        alpha: layer.float("alpha", 1e-4)? as f32,
        beta: layer.float("beta", 0.75)? as f32,
        bias: layer.float("k", 1.0)? as f32,
        channels_last: false,
    };
    // PyTorch has one neighbour more in front, ONNX behind.
    if norm.size.is_multiple_of(2) {
        return Err(unsupported("an even number of neighbours"));
    }
    imp.op(norm, &[layer.x()?])
}

/// A vector norm along axes.
pub fn vector_norm(
    imp: &mut Import,
    x: ValueId,
    p: f64,
    axes: &[i64],
    keeps: bool,
) -> Result<ValueId> {
    let absolute = |imp: &mut Import, kind| {
        let x = imp.unary(UnaryKind::Abs, x)?;
        imp.reduce(kind, x, axes, keeps)
    };
    match p {
        1.0 => imp.reduce(ReduceKind::L1, x, axes, keeps),
        2.0 => imp.reduce(ReduceKind::L2, x, axes, keeps),
        f64::INFINITY => absolute(imp, ReduceKind::Max),
        f64::NEG_INFINITY => absolute(imp, ReduceKind::Min),
        other => Err(unsupported(format!("a norm of the power {other}"))),
    }
}

/// The function `F.normalize`: `x / max(norm(x), eps)`.
pub fn normalize(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let axes = layer.ints("dim")?.unwrap_or_else(|| vec![1]);
    let norm = vector_norm(imp, x, layer.float("p", 2.0)?, &axes, true)?;
    let least = imp.number(layer.float("eps", 1e-12)?, x)?;
    let norm = imp.binary(BinaryKind::Max, norm, least)?;
    imp.div(x, norm)
}
