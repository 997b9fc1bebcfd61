//! Functions of one blob.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Binary, BinaryKind, UnaryKind};

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::layer::Layer;

/// The layer `y = kind(x)`.
pub fn of(imp: &mut Import, layer: &Layer, kind: UnaryKind) -> Outputs {
    Ok(vec![imp.unary(kind, layer.input(0)?)?])
}

pub fn relu6(imp: &mut Import, layer: &Layer) -> Outputs {
    Ok(vec![relu6_of(imp, layer.input(0)?)?])
}

/// `min(max(x, 0), 6)`.
pub fn relu6_of(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    imp.clipped(x, 0.0, 6.0)
}

pub fn clip(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let (min, max) = (params.float(0.0)?, params.float(0.0)?);
    Ok(vec![imp.clipped(layer.input(0)?, min, max)?])
}

pub fn elu(imp: &mut Import, layer: &Layer) -> Outputs {
    let alpha = layer.params().float(1.0)?;
    of(imp, layer, UnaryKind::Elu { alpha })
}

pub fn selu(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let (alpha, gamma) = (params.float(1.673_263_2)?, params.float(1.050_701)?);
    of(imp, layer, UnaryKind::Selu { alpha, gamma })
}

pub fn hard_sigmoid(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let (alpha, beta) = (params.float(1.0)?, params.float(0.0)?);
    of(imp, layer, UnaryKind::HardSigmoid { alpha, beta })
}

/// `x * max(0, min(1, alpha * y + beta))`, where `y` is the second input, if there is one.
pub fn hard_swish(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let (alpha, beta) = (params.float(1.0)?, params.float(0.0)?);
    let x = layer.input(0)?;
    Ok(vec![match layer.inputs.get(1) {
        Some(&y) if y != x => {
            let gate = imp.unary(UnaryKind::HardSigmoid { alpha, beta }, y)?;
            imp.mul(x, gate)?
        }
        _ => imp.hard_swish(x, alpha, beta)?,
    }])
}

/// `log(sigmoid(x))`, which is `-softplus(-x)`.
pub fn log_sigmoid(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = imp.unary(UnaryKind::Neg, layer.input(0)?)?;
    let y = imp.unary(UnaryKind::Softplus, x)?;
    Ok(vec![imp.unary(UnaryKind::Neg, y)?])
}

pub fn rsqrt(imp: &mut Import, layer: &Layer) -> Outputs {
    let root = imp.unary(UnaryKind::Sqrt, layer.input(0)?)?;
    Ok(vec![imp.unary(UnaryKind::Reciprocal, root)?])
}

/// `(x * scale + shift) ^ exponent`.
pub fn power(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let (exponent, scale, shift) = (params.float(1.0)?, params.float(1.0)?, params.float(0.0)?);
    let x = imp.scaled(layer.input(0)?, scale)?;
    let x = imp.shifted(x, shift)?;
    Ok(vec![match exponent {
        1.0 => x,
        exponent => {
            let exponent = imp.float(exponent)?;
            imp.binary(BinaryKind::Pow, x, exponent)?
        }
    }])
}

/// One slope for all, or one for each channel.
pub fn prelu(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let shared = layer.params().int(0)? == 1;
    let slopes = match shared {
        true => imp.weights(layer, 0, "slopes", &[1])?,
        false => {
            let channels = imp.channels(x)?;
            let slopes = imp.weights(layer, 0, "slopes", &[channels])?;
            imp.per_channel(slopes, x)?
        }
    };
    Ok(vec![imp.op(Binary::new(BinaryKind::PRelu), &[x, slopes])?])
}
