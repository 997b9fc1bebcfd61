//! Norms, and factors of channels.

use kilim_core::Dim;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Activation, AveragePool, BinaryKind, LayerNorm, Lrn, Padding, ReduceKind, RmsNorm, UnaryKind,
    Window,
};
use kilim_core::tensor::Tensor;

use super::{Outputs, along_channels};
use crate::mnn::import::Import;
use crate::mnn::invalid;
use crate::mnn::op::{Op, Params};
use crate::mnn::weights::{floats, left_out};

/// The tables of parameters.
const LRN: u8 = 23;
const NORMALIZE: u8 = 27;
const SCALE: u8 = 58;
const LAYER_NORM: u8 = 88;

/// A list that must be there.
fn needed(imp: &mut Import, p: &Params, slot: usize, what: &str, count: usize) -> Result<ValueId> {
    let list = floats(imp, p, slot, what, count)?;
    list.ok_or_else(left_out)
}

/// The operator Scale: a factor and an addend for each channel.
pub fn scale(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(SCALE)?);
    let (count, beside) = (p.size(0, 0)?, p.longs(3)?);
    let (factor, addend) = match beside[..] {
        [offset, factors, addends, ..] if factors > 0 => {
            let mut read = |offset, what: &str| -> Result<ValueId> {
                let tensor = imp
                    .numbers
                    .beside(offset, kilim_core::DType::F32, &[count])?;
                Ok(imp.node_constant(what, tensor))
            };
            let factor = read(offset, "scale")?;
            let addend = match addends {
                1.. => Some(read(offset.saturating_add(factors), "bias")?),
                _ => None,
            };
            (factor, addend)
        }
        _ => (
            needed(imp, &p, 1, "scale", count)?,
            floats(imp, &p, 2, "bias", count)?,
        ),
    };
    let factor = along_channels(imp, op, factor, x)?;
    let mut y = imp.mul(x, factor)?;
    if let Some(addend) = addend {
        let addend = along_channels(imp, op, addend, x)?;
        y = imp.add(y, addend)?;
    }
    Ok(vec![y])
}

/// The operator LayerNorm, over the last dimensions, or over groups of channels.
pub fn layer_norm(imp: &mut Import, op: &Op) -> Outputs {
    let (mut x, p) = (op.input(0)?, op.params(LAYER_NORM)?);
    if op.inputs.len() > 1 || !p.longs(5)?.is_empty() {
        return Err(unsupported(
            "a norm with a residual, or with numbers in another file",
        ));
    }
    let (rank, group, given) = (imp.rank(x)?, p.int(4, 1)?, p.ints(0)?);
    if group > 1 {
        let whole = imp.shape_of(x)?;
        x = imp.reshape(x, &[0, group.into(), -1])?;
        let y = normed(imp, &p, x, 1)?;
        return Ok(vec![imp.reshape_to(y, whole)?]);
    }
    let axes = given.iter().map(|&axis| imp.axis_of(x, axis));
    let mut axes = axes.collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    axes.dedup();
    if axes.is_empty() {
        return Err(invalid("a norm over no dimension"));
    }
    if axes.iter().copied().eq(rank - axes.len()..rank) {
        return Ok(vec![normed(imp, &p, x, axes.len())?]);
    }
    // Axes in between are brought behind all others, and back.
    let others = (0..rank).filter(|axis| !axes.contains(axis));
    let order: Vec<usize> = others.chain(axes.iter().copied()).collect();
    let mut back = vec![0; rank];
    order
        .iter()
        .enumerate()
        .for_each(|(place, &axis)| back[axis] = place);
    x = imp.transpose(x, &order)?;
    let y = normed(imp, &p, x, axes.len())?;
    Ok(vec![imp.transpose(y, &back)?])
}

/// The norm over the last `axes` dimensions.
fn normed(imp: &mut Import, p: &Params, x: ValueId, axes: usize) -> Result<ValueId> {
    let (epsilon, rms) = (p.float(1, 0.0)?, p.flag(6, false)?);
    let rank = imp.rank(x)?;
    let inner: Option<Vec<usize>> = (rank - axes..rank)
        .map(|axis| imp.length(x, axis as i64).known())
        .collect();
    let count = p.vector(2, 4)?.map(|v| v.len);
    let scale = match count {
        Some(count) => floats(imp, p, 2, "scale", count)?,
        None => None,
    };
    let bias = match (count, p.vector(3, 4)?) {
        (Some(count), Some(_)) => floats(imp, p, 3, "bias", count)?,
        _ => None,
    };
    let Some(inner) = inner else {
        return spelt(imp, x, [scale, bias], (epsilon, rms), axes);
    };
    let shape: Vec<i64> = inner.iter().map(|&n| n as i64).collect();
    let mut shaped = |list: ValueId| match axes {
        1 => Ok(list),
        _ => imp.reshape(list, &shape),
    };
    let (scale, bias) = (
        scale.map(&mut shaped).transpose()?,
        bias.map(&mut shaped).transpose()?,
    );
    let scale = match scale {
        Some(scale) => scale,
        None => {
            let ones = Tensor::filled(&inner, &Tensor::scalar(1.0_f32)?)?;
            imp.node_constant("scale", ones)
        }
    };
    let axis = -(axes as i64);
    if rms {
        let y = imp.op(RmsNorm { axis, epsilon }, &[x, scale])?;
        return bias.map_or(Ok(y), |bias| imp.add(y, bias));
    }
    imp.step(LayerNorm { axis, epsilon }, &[Some(x), Some(scale), bias])
}

/// A norm over dimensions that are open, step by step.
fn spelt(
    imp: &mut Import,
    x: ValueId,
    [scale, bias]: [Option<ValueId>; 2],
    (epsilon, rms): (f32, bool),
    axes: usize,
) -> Result<ValueId> {
    if axes > 1 && (scale.is_some() || bias.is_some()) {
        return Err(unsupported("factors of dimensions that are open"));
    }
    let over: Vec<i64> = (-(axes as i64)..0).collect();
    let x = match rms {
        true => x,
        false => {
            let mean = imp.reduce(ReduceKind::Mean, x, &over, true)?;
            imp.sub(x, mean)?
        }
    };
    let squares = imp.mul(x, x)?;
    let mean = imp.reduce(ReduceKind::Mean, squares, &over, true)?;
    let epsilon = imp.float(epsilon)?;
    let variance = imp.add(mean, epsilon)?;
    let deviation = imp.unary(UnaryKind::Sqrt, variance)?;
    let mut y = imp.div(x, deviation)?;
    if let Some(scale) = scale {
        y = imp.mul(y, scale)?;
    }
    match bias {
        Some(bias) => imp.add(y, bias),
        None => Ok(y),
    }
}

/// The operator LRN: across channels, or around each pixel.
pub fn lrn(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(LRN)?);
    let norm = Lrn {
        size: p.positive(1, 0)?,
        alpha: p.float(2, 0.0)?,
        beta: p.float(3, 0.0)?,
        bias: p.float(4, 1.0)?,
        channels_last: op.layout().channels_last(),
    };
    if norm.size.is_multiple_of(2) {
        return Err(unsupported("an even number of neighbours"));
    }
    if p.int(0, 0)? == 0 {
        return Ok(vec![imp.op(norm, &[x])?]);
    }
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
        channels_last: op.layout().channels_last(),
        activation: Activation::None,
    };
    let mean = imp.op(pool, &[squares])?;
    let (alpha, bias, beta) = (
        imp.float(norm.alpha)?,
        imp.float(norm.bias)?,
        imp.float(norm.beta)?,
    );
    let sum = imp.mul(mean, alpha)?;
    let sum = imp.add(sum, bias)?;
    let divisor = imp.binary(BinaryKind::Pow, sum, beta)?;
    Ok(vec![imp.div(x, divisor)?])
}

/// The operator Normalize: by the root of the sum of squares of channels, or of whole pictures, times a factor for each channel.
pub fn normalize(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(NORMALIZE)?);
    let rank = imp.rank(x)?;
    let channel = op.layout().channel(rank);
    let axes: Vec<i64> = match p.int(0, 0)? {
        0 => vec![channel as i64],
        _ => (1..rank as i64).collect(),
    };
    let count = match (p.vector(3, 4)?, imp.length(x, channel as i64)) {
        (Some(scale), _) => scale.len,
        (None, Dim::Known(n)) => n,
        (None, _) => return Err(invalid("the scale of the operator is missing")),
    };
    let scale = needed(imp, &p, 3, "scale", count)?;
    let sum = imp.reduce(ReduceKind::SumSquare, x, &axes, true)?;
    let epsilon = imp.float(p.float(2, 0.0)?)?;
    let sum = imp.add(sum, epsilon)?;
    let root = imp.unary(UnaryKind::Sqrt, sum)?;
    let y = imp.div(x, root)?;
    let scale = along_channels(imp, op, scale, x)?;
    Ok(vec![imp.mul(y, scale)?])
}
