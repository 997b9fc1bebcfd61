//! Functions of one blob, and the activations that other layers have.

use kilim_core::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Binary, BinaryKind, Unary, UnaryKind};

use super::Outputs;
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;

/// The layer `y = kind(x)`.
pub fn of(imp: &mut Import, layer: &Layer, kind: UnaryKind) -> Outputs {
    Ok(vec![imp.unary(kind, layer.input(0)?)?])
}

/// The result of a layer with its activation: `ids` are those of its number and of its parameters
/// (`src/layer/fused_activation.h`).
pub fn activated(imp: &mut Import, layer: &Layer, x: ValueId, ids: [i32; 2]) -> Result<ValueId> {
    let params = layer.params.floats(ids[1])?;
    let param = |i: usize| {
        params
            .get(i)
            .copied()
            .ok_or_else(|| invalid("an activation has too few parameters"))
    };
    let kind = match layer.params.int(ids[0], 0)? {
        0 => return Ok(x),
        1 => UnaryKind::Relu,
        2 => UnaryKind::LeakyRelu { alpha: param(0)? },
        3 => clip(param(0)?, param(1)?),
        4 => UnaryKind::Sigmoid,
        5 => UnaryKind::Mish,
        6 => return imp.hard_swish(x, param(0)?, param(1)?),
        other => return Err(unsupported(format!("activation number {other}"))),
    };
    imp.unary(kind, x)
}

fn clip(min: f32, max: f32) -> UnaryKind {
    UnaryKind::Clip {
        min: min.into(),
        max: max.into(),
    }
}

pub fn relu(imp: &mut Import, layer: &Layer) -> Outputs {
    match layer.params.float(0, 0.0)? {
        0.0 => of(imp, layer, UnaryKind::Relu),
        alpha => of(imp, layer, UnaryKind::LeakyRelu { alpha }),
    }
}

/// One slope for all, or one for each channel.
pub fn prelu(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let count = layer.positive(0, 0)?;
    let slopes = imp.plain("slopes", &[count])?;
    let slopes = match count {
        1 => slopes,
        _ => imp.per_channel(slopes, x)?,
    };
    Ok(vec![imp.op(Binary::new(BinaryKind::PRelu), &[x, slopes])?])
}

pub fn elu(imp: &mut Import, layer: &Layer) -> Outputs {
    let alpha = layer.params.float(0, 0.1)?;
    of(imp, layer, UnaryKind::Elu { alpha })
}

pub fn selu(imp: &mut Import, layer: &Layer) -> Outputs {
    let (alpha, gamma) = (
        layer.params.float(0, 1.673_263_2)?,
        layer.params.float(1, 1.050_701)?,
    );
    of(imp, layer, UnaryKind::Selu { alpha, gamma })
}

pub fn celu(imp: &mut Import, layer: &Layer) -> Outputs {
    let alpha = layer.params.float(0, 1.0)?;
    of(imp, layer, UnaryKind::Celu { alpha })
}

pub fn hard_sigmoid(imp: &mut Import, layer: &Layer) -> Outputs {
    let (alpha, beta) = (layer.params.float(0, 0.2)?, layer.params.float(1, 0.5)?);
    of(imp, layer, UnaryKind::HardSigmoid { alpha, beta })
}

pub fn hard_swish(imp: &mut Import, layer: &Layer) -> Outputs {
    let (alpha, beta) = (layer.params.float(0, 0.2)?, layer.params.float(1, 0.5)?);
    Ok(vec![imp.hard_swish(layer.input(0)?, alpha, beta)?])
}

pub fn gelu(imp: &mut Import, layer: &Layer) -> Outputs {
    let tanh = layer.params.flag(0, false)?;
    of(imp, layer, UnaryKind::Gelu { tanh })
}

pub fn shrink(imp: &mut Import, layer: &Layer) -> Outputs {
    let (bias, lambda) = (layer.params.float(0, 0.0)?, layer.params.float(1, 0.5)?);
    of(imp, layer, UnaryKind::Shrink { bias, lambda })
}

pub fn clipped(imp: &mut Import, layer: &Layer) -> Outputs {
    let (min, max) = (
        layer.params.float(0, f32::MIN)?,
        layer.params.float(1, f32::MAX)?,
    );
    of(imp, layer, clip(min, max))
}

/// 1 where the blob is above the threshold, else 0.
pub fn threshold(imp: &mut Import, layer: &Layer) -> Outputs {
    let threshold = imp.float(layer.params.float(0, 0.0)?)?;
    let above = imp.binary(BinaryKind::Greater, layer.input(0)?, threshold)?;
    Ok(vec![imp.cast(above, DType::F32)?])
}

/// Dropout multiplies by a scale, which is 1 but in old files.
pub fn dropout(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    Ok(vec![match layer.params.float(0, 1.0)? {
        1.0 => x,
        scale => imp.scaled(x, scale)?,
    }])
}

/// `shift + x * scale`, of the parameters with these ids.
fn affine(imp: &mut Import, layer: &Layer, scale: i32, shift: i32) -> Result<ValueId> {
    let x = imp.scaled(layer.input(0)?, layer.params.float(scale, 1.0)?)?;
    imp.shifted(x, layer.params.float(shift, 0.0)?)
}

pub fn power(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = affine(imp, layer, 1, 2)?;
    Ok(vec![match layer.params.float(0, 1.0)? {
        1.0 => x,
        power => {
            let power = imp.float(power)?;
            imp.binary(BinaryKind::Pow, x, power)?
        }
    }])
}

/// Powers of a base, which is e where the file says -1.
pub fn exp(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = affine(imp, layer, 1, 2)?;
    Ok(vec![match layer.params.float(0, -1.0)? {
        -1.0 => imp.unary(UnaryKind::Exp, x)?,
        base => {
            let base = imp.float(base)?;
            imp.binary(BinaryKind::Pow, base, x)?
        }
    }])
}

/// Logarithms to a base, which is e where the file says -1.
pub fn log(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = affine(imp, layer, 1, 2)?;
    let y = imp.unary(UnaryKind::Log, x)?;
    Ok(vec![match layer.params.float(0, -1.0)? {
        -1.0 => y,
        base => imp.scaled(y, 1.0 / base.ln())?,
    }])
}

/// The layer `UnaryOp` (`src/layer/unaryop.h`).
pub fn unary_op(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let number = layer.params.int(0, 0)?;
    if let Some(y) = imp.numbered(x, number)? {
        return Ok(vec![y]);
    }
    let kind = match number {
        16 => UnaryKind::Tanh,
        17 => {
            let y = imp.unary(UnaryKind::Log, x)?;
            return Ok(vec![imp.scaled(y, std::f32::consts::LOG10_E)?]);
        }
        18 => UnaryKind::Round,
        19 => return truncated(imp, x),
        20 => UnaryKind::Sign,
        21 => {
            let (y, one) = (imp.unary(UnaryKind::Exp, x)?, imp.float(1.0)?);
            return Ok(vec![imp.sub(y, one)?]);
        }
        22 => UnaryKind::Sinh,
        23 => UnaryKind::Asinh,
        24 => UnaryKind::Cosh,
        25 => UnaryKind::Acosh,
        26 => UnaryKind::Atanh,
        27 => {
            let one = imp.float(1.0)?;
            let x = imp.add(x, one)?;
            return Ok(vec![imp.unary(UnaryKind::Log, x)?]);
        }
        other => return Err(unsupported(format!("function number {other}"))),
    };
    Ok(vec![imp.op(Unary(kind), &[x])?])
}

/// The integer next to each number towards zero.
fn truncated(imp: &mut Import, x: ValueId) -> Outputs {
    let size = imp.unary(UnaryKind::Abs, x)?;
    let size = imp.unary(UnaryKind::Floor, size)?;
    let sign = imp.unary(UnaryKind::Sign, x)?;
    Ok(vec![imp.mul(size, sign)?])
}
