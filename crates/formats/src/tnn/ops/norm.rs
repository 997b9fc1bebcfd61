//! Normalisation, and factors and biases of channels.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, GroupNorm, InstanceNorm, LayerNorm, Lrn, ReduceKind, UnaryKind};

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::Layer;

/// The layers `BatchNormCxx` and `Scale`: `x * factor + bias`, for each channel or for all.
pub fn batch_norm(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let channels = imp.channels(x)?;
    let count = imp
        .buffer(layer, 0)?
        .map_or(channels, |stored| stored.len());
    let scale = imp.weights(layer, 0, "scale", &[count])?;
    let bias = imp.optional(layer, 1, "bias", &[count])?;
    if count != channels {
        let mut y = imp.mul(x, scale)?;
        if let Some(bias) = bias {
            y = imp.add(y, bias)?;
        }
        return Ok(vec![y]);
    }
    Ok(vec![imp.channel_affine(x, scale, bias, channels)?])
}

pub fn bias_add(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let channels = imp.channels(x)?;
    let bias = imp.weights(layer, 0, "bias", &[channels])?;
    let bias = imp.per_channel(bias, x)?;
    Ok(vec![imp.add(x, bias)?])
}

pub fn instance_norm(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut params = layer.params();
    params.int(0)?;
    let epsilon = params.float(1e-5)?;
    let channels = imp.channels(x)?;
    let scale = imp.weights(layer, 0, "scale", &[channels])?;
    let bias = match imp.optional(layer, 1, "bias", &[channels])? {
        Some(bias) => bias,
        None => imp.filled(channels, 0.0)?,
    };
    Ok(vec![imp.op(InstanceNorm { epsilon }, &[x, scale, bias])?])
}

/// Factors and biases are blobs, which are constants of the file.
fn affine(layer: &Layer) -> Result<[ValueId; 3]> {
    Ok([layer.input(0)?, layer.input(1)?, layer.input(2)?])
}

pub fn group_norm(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let norm = GroupNorm {
        groups: params.positive(0)?,
        epsilon: params.float(1e-5)?,
    };
    Ok(vec![imp.op(norm, &affine(layer)?)?])
}

/// The layer `LayerNorm`, of the innermost dimensions that the factors have.
pub fn layer_norm(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    params.int(0)?;
    let epsilon = params.float(1e-5)?;
    let inputs = affine(layer)?;
    let axis = -(imp.rank(inputs[1])? as i64);
    if axis == 0 {
        return Err(invalid("a norm of single numbers"));
    }
    Ok(vec![imp.op(LayerNorm { axis, epsilon }, &inputs)?])
}

pub fn lrn(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let norm = Lrn {
        alpha: params.float(0.0)?,
        beta: params.float(0.0)?,
        bias: params.float(0.0)?,
        size: params.positive(0)?,
        channels_last: false,
    };
    if norm.size.is_multiple_of(2) {
        return Err(unsupported("an even number of neighbours"));
    }
    Ok(vec![imp.op(norm, &[layer.input(0)?])?])
}

/// The layer `Normalize`: numbers divided by a norm of all channels (`device/cpu/acc/cpu_normalize_layer_acc.cc`).
pub fn normalize(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut params = layer.params();
    if params.int(0)? != 0 {
        return Err(unsupported("a norm of all pixels"));
    }
    let epsilon = params.float(1e-12)?;
    params.int(1)?;
    if params.int(1)? != 1 {
        return Err(unsupported("a norm along another axis than the channels"));
    }
    let norm = match params.int(2)? {
        1 => imp.reduce(ReduceKind::L1, x, &[1], true)?,
        2 => {
            let squares = imp.reduce(ReduceKind::SumSquare, x, &[1], true)?;
            let root = imp.unary(UnaryKind::Sqrt, squares)?;
            let epsilon = imp.float(epsilon)?;
            imp.binary(BinaryKind::Max, root, epsilon)?
        }
        other => return Err(unsupported(format!("norm number {other}"))),
    };
    Ok(vec![imp.div(x, norm)?])
}
