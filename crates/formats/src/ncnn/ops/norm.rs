//! Normalisation, and factors and biases of channels.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Activation, AveragePool, BatchNorm, BinaryKind, GroupNorm, InstanceNorm, LayerNorm, Lrn,
    Padding, ReduceKind, RmsNorm, UnaryKind, Window,
};
use kilim_core::tensor::Tensor;

use super::{Outputs, fixed};
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;
use crate::ncnn::params::OPEN;

pub fn batch_norm(imp: &mut Import, layer: &Layer) -> Outputs {
    let channels = [layer.positive(0, 0)?];
    let (scale, mean) = (
        imp.plain("slope", &channels)?,
        imp.plain("mean", &channels)?,
    );
    let (variance, bias) = (
        imp.plain("variance", &channels)?,
        imp.plain("bias", &channels)?,
    );
    let norm = BatchNorm {
        epsilon: layer.params.float(1, 0.0)?,
        channels_last: false,
    };
    Ok(vec![imp.op(
        norm,
        &[layer.input(0)?, scale, bias, mean, variance],
    )?])
}

/// Factors of the layer, or of another blob.
pub fn scale(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    if layer.params.int(0, 0)? == OPEN {
        layer
            .params
            .refuse(1, "a bias beside factors of another blob")?;
        let by = layer.input(1)?;
        let by = if imp.blob_rank(by)? == 1 {
            imp.per_channel(by, x)?
        } else {
            by
        };
        return Ok(vec![imp.mul(x, by)?]);
    }
    let channels = [layer.positive(0, 0)?];
    let scale = imp.plain("scale", &channels)?;
    let scale = imp.per_channel(scale, x)?;
    let mut y = imp.mul(x, scale)?;
    if layer.params.flag(1, false)? {
        let bias = imp.plain("bias", &channels)?;
        let bias = imp.per_channel(bias, x)?;
        y = imp.add(y, bias)?;
    }
    Ok(vec![y])
}

pub fn bias(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    // In lists and matrices ncnn adds the first number alone (`src/layer/bias.cpp`).
    if imp.blob_rank(x)? < 3 {
        return Err(unsupported("blobs without channels"));
    }
    let bias = imp.plain("bias", &[layer.positive(0, 0)?])?;
    let bias = imp.per_channel(bias, x)?;
    Ok(vec![imp.add(x, bias)?])
}

/// Factors and biases of a layer; ones and zeros where it has none.
fn affine(imp: &mut Import, layer: &Layer, count: usize, flag: i32) -> Result<[ValueId; 2]> {
    if layer.params.flag(flag, true)? {
        return Ok([imp.plain("gamma", &[count])?, imp.plain("beta", &[count])?]);
    }
    let ones = Tensor::filled(&[count], &Tensor::scalar(1f32)?)?;
    let zeros = Tensor::filled(&[count], &Tensor::scalar(0f32)?)?;
    Ok([
        imp.node_constant("gamma", ones),
        imp.node_constant("beta", zeros),
    ])
}

pub fn instance_norm(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let channels = match layer.params.flag(2, true)? {
        true => layer.positive(0, 0)?,
        false => fixed(imp, x, 1, "the number of channels")?,
    };
    let epsilon = layer.params.float(1, 0.001)?;
    let [gamma, beta] = affine(imp, layer, channels, 2)?;
    Ok(vec![imp.op(InstanceNorm { epsilon }, &[x, gamma, beta])?])
}

pub fn group_norm(imp: &mut Import, layer: &Layer) -> Outputs {
    let norm = GroupNorm {
        groups: layer.positive(0, 1)?,
        epsilon: layer.params.float(2, 0.001)?,
    };
    let [gamma, beta] = affine(imp, layer, layer.positive(1, 0)?, 3)?;
    let x = layer.input(0)?;
    if imp.blob_rank(x)? > 1 {
        return Ok(vec![imp.op(norm, &[x, gamma, beta])?]);
    }
    let x = imp.unsqueeze(x, &[2])?;
    let y = imp.op(norm, &[x, gamma, beta])?;
    Ok(vec![imp.squeeze(y, &[2])?])
}

/// The first of the innermost axes with `size` elements together, and the shape of these.
fn innermost(imp: &Import, x: ValueId, size: usize) -> Result<(i64, Vec<i64>)> {
    let rank = imp.blob_rank(x)?;
    let mut elements = 1usize;
    let mut shape = Vec::new();
    for axis in (1..=rank as i64).rev() {
        let Some(n) = imp.length(x, axis).known() else {
            // Lists and matrices are normalised along rows, whose size the layer knows.
            return match rank {
                1 | 2 => Ok((-1, vec![size as i64])),
                _ => Err(unsupported("a norm along dimensions of an open size")),
            };
        };
        elements = elements.saturating_mul(n);
        shape.insert(0, n as i64);
        if elements == size {
            return Ok((-(shape.len() as i64), shape));
        }
    }
    Err(invalid("a norm is of another size than the blob").with_got(size))
}

/// Weights of the innermost dimensions in their shape.
fn shaped(imp: &mut Import, weights: ValueId, shape: &[i64]) -> Result<ValueId> {
    match shape.len() {
        1 => Ok(weights),
        _ => imp.reshape(weights, shape),
    }
}

pub fn layer_norm(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let size = layer.positive(0, 0)?;
    let (axis, shape) = innermost(imp, x, size)?;
    let epsilon = layer.params.float(1, 0.001)?;
    let [gamma, beta] = affine(imp, layer, size, 2)?;
    let inputs = [x, shaped(imp, gamma, &shape)?, shaped(imp, beta, &shape)?];
    Ok(vec![imp.op(LayerNorm { axis, epsilon }, &inputs)?])
}

pub fn rms_norm(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let size = layer.positive(0, 0)?;
    let (axis, shape) = innermost(imp, x, size)?;
    let epsilon = layer.params.float(1, 0.001)?;
    let gamma = match layer.params.flag(2, true)? {
        true => imp.plain("gamma", &[size])?,
        false => {
            let ones = Tensor::filled(&[size], &Tensor::scalar(1f32)?)?;
            imp.node_constant("gamma", ones)
        }
    };
    let gamma = shaped(imp, gamma, &shape)?;
    Ok(vec![imp.op(RmsNorm { axis, epsilon }, &[x, gamma])?])
}

/// The layer `Normalize`: numbers divided by the root of the sum of squares, times factors (`src/layer/normalize.cpp`).
pub fn normalize(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let rank = imp.rank(x)? as i64;
    if rank < 4 {
        return Err(unsupported("blobs without channels"));
    }
    let mut axes = Vec::new();
    if layer.params.flag(4, true)? {
        axes.push(1);
    }
    if layer.params.flag(0, false)? {
        axes.extend(2..rank);
    }
    let factors = imp.plain("scale", &[layer.positive(3, 0)?])?;
    let factors = match layer.params.flag(1, false)? {
        true => imp.slice(factors, 0, 0, 1)?,
        false => imp.per_channel(factors, x)?,
    };
    let squares = imp.reduce(ReduceKind::SumSquare, x, &axes, true)?;
    let epsilon = imp.float(layer.params.float(2, 0.0001)?)?;
    let root = match layer.params.int(9, 0)? {
        0 => {
            let sum = imp.add(squares, epsilon)?;
            imp.unary(UnaryKind::Sqrt, sum)?
        }
        1 => {
            let root = imp.unary(UnaryKind::Sqrt, squares)?;
            imp.binary(BinaryKind::Max, root, epsilon)?
        }
        _ => {
            let sum = imp.binary(BinaryKind::Max, squares, epsilon)?;
            imp.unary(UnaryKind::Sqrt, sum)?
        }
    };
    let y = imp.div(x, root)?;
    Ok(vec![imp.mul(y, factors)?])
}

/// The layer `MVN`: numbers without their mean, perhaps divided by their deviation (`src/layer/mvn.cpp`).
pub fn mean_variance(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let rank = imp.rank(x)? as i64;
    let first = if layer.params.flag(1, false)? || rank < 4 {
        1
    } else {
        2
    };
    let axes: Vec<i64> = (first..rank).collect();
    let mean = imp.reduce(ReduceKind::Mean, x, &axes, true)?;
    let y = imp.sub(x, mean)?;
    if !layer.params.flag(0, false)? {
        return Ok(vec![y]);
    }
    let squares = imp.mul(y, y)?;
    let variance = imp.reduce(ReduceKind::Mean, squares, &axes, true)?;
    let deviation = imp.unary(UnaryKind::Sqrt, variance)?;
    let epsilon = imp.float(layer.params.float(2, 0.0001)?)?;
    let deviation = imp.add(deviation, epsilon)?;
    Ok(vec![imp.div(y, deviation)?])
}

pub fn lrn(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let norm = Lrn {
        size: layer.positive(1, 5)?,
        alpha: layer.params.float(2, 1.0)?,
        beta: layer.params.float(3, 0.75)?,
        bias: layer.params.float(4, 1.0)?,
        channels_last: false,
    };
    if norm.size.is_multiple_of(2) {
        return Err(unsupported("an even number of neighbours"));
    }
    match layer.params.int(0, 0)? {
        0 => Ok(vec![imp.op(norm, &[x])?]),
        1 => within_channel(imp, x, &norm),
        other => Err(unsupported(format!("region number {other}"))),
    }
}

/// The mean of the squares around a pixel counts, and zeros beyond the border.
fn within_channel(imp: &mut Import, x: ValueId, norm: &Lrn) -> Outputs {
    let squares = imp.mul(x, x)?;
    let pool = AveragePool {
        window: Window {
            kernel: vec![norm.size; 2],
            strides: vec![1; 2],
            dilations: vec![1; 2],
            padding: Padding::Explicit(vec![norm.size / 2; 4]),
            ceil_mode: false,
        },
        count_include_pad: true,
        channels_last: false,
        activation: Activation::None,
    };
    let mean = imp.op(pool, &[squares])?;
    let mean = imp.scaled(mean, norm.alpha)?;
    let bias = imp.float(norm.bias)?;
    let base = imp.add(mean, bias)?;
    let power = imp.float(-norm.beta)?;
    let factor = imp.binary(BinaryKind::Pow, base, power)?;
    Ok(vec![imp.mul(x, factor)?])
}
