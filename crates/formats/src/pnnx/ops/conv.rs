//! Convolutions and their transposes, as modules with weights of their own and as functions of weights.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Conv, ConvTranspose, Pad, PadMode, Padding};

use super::pad::mode_of;
use crate::pnnx::import::Import;
use crate::pnnx::invalid;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::Value;

/// The data with a batch in front, and whether it had none.
fn batched(imp: &mut Import, x: ValueId, axes: usize) -> Result<(ValueId, bool)> {
    match imp.known_shape(x).map(|shape| shape.rank()) {
        Some(rank) if rank == axes + 1 => Ok((imp.unsqueeze(x, &[0])?, true)),
        _ => Ok((x, false)),
    }
}

fn unbatched(imp: &mut Import, y: ValueId, alone: bool) -> Result<ValueId> {
    if alone { imp.squeeze(y, &[0]) } else { Ok(y) }
}

pub fn convolution(imp: &mut Import, layer: &Layer, axes: usize) -> Result<ValueId> {
    let (x, alone) = batched(imp, layer.x()?, axes)?;
    let weights = imp.weights(layer, "weight", 1)?;
    let bias = imp.optional_weights(layer, "bias", 2)?;
    let dilations = layer.positives("dilation", axes, 1)?;
    let sides = sides(imp, layer, weights, &dilations, axes)?;
    let (x, padding) = padded(imp, layer, x, sides)?;
    let conv = Conv {
        strides: layer.positives("stride", axes, 1)?,
        dilations,
        padding,
        groups: layer.positive("groups", 1)?,
        channels_last: false,
        activation: Activation::None,
    };
    let y = imp.step(conv, &[Some(x), Some(weights), bias])?;
    unbatched(imp, y, alone)
}

/// The padding in front of each axis and behind it.
fn sides(
    imp: &Import,
    layer: &Layer,
    weights: ValueId,
    dilations: &[usize],
    axes: usize,
) -> Result<Vec<usize>> {
    let word = match layer.arg("padding") {
        Some(Value::Text(word)) => word,
        _ => {
            let sides = layer.counts("padding", axes, 0)?;
            return Ok(sides.repeat(2));
        }
    };
    match &*word {
        "valid" => Ok(vec![0; 2 * axes]),
        // The odd element is behind.
        "same" => {
            let shape = imp.shape(weights).filter(|shape| shape.len() == axes + 2);
            let shape = shape.ok_or_else(|| unsupported("weights of an open shape"))?;
            let all = shape[2..].iter().zip(dilations);
            let all: Vec<_> = all
                .map(|(&k, &d)| k.saturating_sub(1).saturating_mul(d))
                .collect();
            let begins = all.iter().map(|n| n / 2);
            Ok(begins.chain(all.iter().map(|n| n - n / 2)).collect())
        }
        other => Err(unsupported(format!("the padding `{other}`"))),
    }
}

/// The data and the padding of the convolution. Data that is not padded with zeros is padded before.
fn padded(
    imp: &mut Import,
    layer: &Layer,
    x: ValueId,
    sides: Vec<usize>,
) -> Result<(ValueId, Padding)> {
    let mode = match &*layer.word("padding_mode")? {
        "" | "zeros" => PadMode::Constant,
        word => mode_of(word)?,
    };
    if mode == PadMode::Constant || sides.iter().all(|&side| side == 0) {
        return Ok((x, Padding::Explicit(sides)));
    }
    let sides: Vec<i64> = sides.iter().map(|&side| side as i64).collect();
    let (begins, ends) = sides.split_at(sides.len() / 2);
    let pads = imp.i64s(&[&[0, 0], begins, &[0, 0], ends].concat())?;
    Ok((imp.op(Pad { mode }, &[x, pads])?, Padding::Valid))
}

pub fn transposed(imp: &mut Import, layer: &Layer, axes: usize) -> Result<ValueId> {
    layer.refuse(
        "padding_mode",
        Value::Text("zeros".into()),
        "a padding of other numbers",
    )?;
    let (x, alone) = batched(imp, layer.x()?, axes)?;
    let weights = imp.weights(layer, "weight", 1)?;
    let bias = imp.optional_weights(layer, "bias", 2)?;
    let (strides, dilations) = (
        layer.positives("stride", axes, 1)?,
        layer.positives("dilation", axes, 1)?,
    );
    let output_padding = layer.counts("output_padding", axes, 0)?;
    let most = strides.iter().zip(&dilations).map(|(&s, &d)| s.max(d));
    if output_padding.iter().zip(most).any(|(&n, most)| n >= most) {
        return Err(invalid(
            "`output_padding` is not smaller than stride or dilation",
        ));
    }
    let conv = ConvTranspose {
        strides,
        dilations,
        padding: Padding::Explicit(layer.counts("padding", axes, 0)?.repeat(2)),
        output_padding,
        output_shape: None,
        groups: layer.positive("groups", 1)?,
        channels_last: false,
        activation: Activation::None,
    };
    let y = imp.step(conv, &[Some(x), Some(weights), bias])?;
    unbatched(imp, y, alone)
}
