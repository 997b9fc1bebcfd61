//! Normalisation, and factors and biases of channels.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Activation, AveragePool, BatchNorm, BinaryKind, InstanceNorm, LayerNorm, Lrn, Padding, Window,
};
use kilim_core::tensor::Tensor;

use super::Outputs;
use crate::tengine::import::Import;
use crate::tengine::invalid;
use crate::tengine::node::Node;

/// Numbers that may have dimensions of 1 around them, as a list.
pub fn list(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    match imp.rank(x)? {
        1 => Ok(x),
        _ => imp.reshape(x, &[-1]),
    }
}

/// Means and variances are divided by a factor (`device/cpu/op/batchnorm/batchnorm_ref.c`).
pub fn batch_norm(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let (factor, epsilon) = (params.float(0)?, params.float(1)?);
    let factor = if factor == 0.0 { 0.0 } else { 1.0 / factor };
    let (mean, variance) = (list(imp, node.input(3)?)?, list(imp, node.input(4)?)?);
    let (mean, variance) = (imp.scaled(mean, factor)?, imp.scaled(variance, factor)?);
    let channels = imp.channels(x)?;
    let (gamma, beta) = match params.int(2)? {
        0 => (list(imp, node.input(1)?)?, list(imp, node.input(2)?)?),
        _ => (imp.filled(channels, 1.0)?, imp.filled(channels, 0.0)?),
    };
    let norm = BatchNorm {
        epsilon,
        channels_last: false,
    };
    Ok(vec![imp.op(norm, &[x, gamma, beta, mean, variance])?])
}

pub fn scale(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let scale = list(imp, node.input(1)?)?;
    let bias = match node.inputs.get(2) {
        Some(&bias) => Some(list(imp, bias)?),
        None => None,
    };
    let channels = imp.channels(x)?;
    Ok(vec![imp.channel_affine(x, scale, bias, channels)?])
}

pub fn bias(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let bias = list(imp, node.input(1)?)?;
    let bias = imp.per_channel(bias, x)?;
    Ok(vec![imp.add(x, bias)?])
}

pub fn instance_norm(imp: &mut Import, node: &Node) -> Outputs {
    let epsilon = node.params()?.float(0)?;
    let (scale, bias) = (list(imp, node.input(1)?)?, list(imp, node.input(2)?)?);
    let norm = InstanceNorm { epsilon };
    Ok(vec![imp.op(norm, &[node.input(0)?, scale, bias])?])
}

/// A norm of the innermost dimension.
pub fn layer_norm(imp: &mut Import, node: &Node) -> Outputs {
    let epsilon = node.params()?.float(0)?;
    let (scale, bias) = (list(imp, node.input(1)?)?, list(imp, node.input(2)?)?);
    let norm = LayerNorm { axis: -1, epsilon };
    Ok(vec![imp.op(norm, &[node.input(0)?, scale, bias])?])
}

/// `x * (1 + alpha / size * sum(x^2 + k))^-beta` over neighbouring channels (`device/cpu/op/lrn/lrn_ref.c`). There are fewer at the
/// first and last channels.
pub fn lrn(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let size = node.positive(0)?;
    let (alpha, beta) = (params.float(1)?, params.float(2)?);
    if params.int(3)? != 0 {
        return Err(unsupported("neighbours within a channel"));
    }
    if size.is_multiple_of(2) {
        return Err(unsupported("an even number of neighbours"));
    }
    let k = params.float(4)?;
    if k == 0.0 {
        let norm = Lrn {
            size,
            alpha,
            beta,
            bias: 1.0,
            channels_last: false,
        };
        return Ok(vec![imp.op(norm, &[x])?]);
    }
    let channels = imp.channels(x)?;
    let half = size / 2;
    let bases = (0..channels).map(|c| {
        let there = (c + half).min(channels - 1) - c.saturating_sub(half) + 1;
        1.0 + alpha / size as f32 * there as f32 * k
    });
    let bases: Vec<f32> = bases.collect();
    let bases = Tensor::from_slice(&[channels], &bases)?;
    let bases = imp.node_constant("bases", bases);
    let bases = imp.per_channel(bases, x)?;
    let squares = imp.mul(x, x)?;
    let mean = mean_of_channels(imp, squares, size)?;
    let mean = imp.scaled(mean, alpha)?;
    let base = imp.add(mean, bases)?;
    let power = imp.float(-beta)?;
    let factor = imp.binary(BinaryKind::Pow, base, power)?;
    Ok(vec![imp.mul(x, factor)?])
}

/// The mean of `size` neighbouring channels, with zeros beyond the first and last.
fn mean_of_channels(imp: &mut Import, x: ValueId, size: usize) -> Result<ValueId> {
    if imp.rank(x)? != 4 {
        return Err(invalid("a tensor that is no picture"));
    }
    let y = imp.unsqueeze(x, &[1])?;
    let pool = AveragePool {
        window: Window {
            kernel: vec![size, 1, 1],
            strides: vec![1; 3],
            dilations: vec![1; 3],
            padding: Padding::Explicit(vec![size / 2, 0, 0, size / 2, 0, 0]),
            ceil_mode: false,
        },
        count_include_pad: true,
        channels_last: false,
        activation: Activation::None,
    };
    let y = imp.op(pool, &[y])?;
    imp.squeeze(y, &[1])
}
