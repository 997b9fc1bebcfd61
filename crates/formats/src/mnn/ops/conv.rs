//! Convolutions and their transposes. Weights are `[m, c / groups, kernel..]`, those of transposed ones the other way around.

use kilim_core::Dim;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Conv, ConvTranspose, Padding};

use super::Outputs;
use crate::mnn::import::Import;
use crate::mnn::invalid;
use crate::mnn::op::{Op, Params};
use crate::mnn::weights::{CONVOLUTION, CONVOLUTION_3D, Weights, given};

/// The shape of a convolution.
struct Shape {
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    padding: Padding,
    /// What is added to the output of a transposed convolution, and whether its size is input.
    more: Vec<usize>,
    asked: bool,
    groups: usize,
    outputs: usize,
    inputs: usize,
    activation: Activation,
}

impl Shape {
    /// Reads a `Convolution2DCommon`.
    fn flat(common: &Params) -> Result<Shape> {
        let kernel = vec![common.positive(3, 1)?, common.positive(2, 1)?];
        let pads = match &common.sizes(14)?[..] {
            [top, left, bottom, right, ..] => vec![*top, *left, *bottom, *right],
            [] => {
                let (x, y) = (common.size(0, 0)?, common.size(1, 0)?);
                vec![y, x, y, x]
            }
            _ => return Err(invalid("a padding has fewer than four sides")),
        };
        Ok(Shape {
            kernel,
            strides: vec![common.positive(5, 1)?, common.positive(4, 1)?],
            dilations: vec![common.positive(7, 1)?, common.positive(6, 1)?],
            padding: padding(common.choice(8)?, pads)?,
            more: common.sizes(15)?.into_iter().take(2).collect(),
            asked: common.flag(16, false)?,
            groups: common.positive(9, 1)?,
            outputs: common.size(10, 0)?,
            inputs: common.size(11, 0)?,
            activation: activation(common.flag(12, false)?, common.flag(13, false)?),
        })
    }

    /// Reads a `Convolution3DCommon`.
    fn of_volumes(common: &Params) -> Result<Shape> {
        let (kernel, mut pads) = (common.sizes(2)?, common.sizes(3)?);
        if pads.len() == 3 {
            pads.extend_from_within(..);
        }
        let (strides, dilations) = (common.sizes(1)?, common.sizes(0)?);
        let all = [kernel.len(), strides.len(), dilations.len()];
        if all != [3; 3] || kernel.contains(&0) || strides.contains(&0) || dilations.contains(&0) {
            return Err(invalid(
                "a convolution of volumes has no kernel of three sizes",
            ));
        }
        let mode = common.choice(4)?;
        if mode == 0 && pads.len() != 6 {
            return Err(invalid("a padding has fewer than six sides"));
        }
        Ok(Shape {
            kernel,
            strides,
            dilations,
            padding: padding(mode, pads)?,
            more: common.sizes(10)?,
            asked: common.flag(11, false)?,
            groups: common.positive(9, 1)?,
            outputs: common.size(6, 0)?,
            inputs: common.size(5, 0)?,
            activation: activation(common.flag(7, false)?, common.flag(8, false)?),
        })
    }
}

/// The padding of a number in the schema (`PadMode`).
fn padding(mode: i8, sides: Vec<usize>) -> Result<Padding> {
    match mode {
        0 => Ok(Padding::Explicit(sides)),
        1 => Ok(Padding::Valid),
        2 => Ok(Padding::SameUpper),
        other => Err(unsupported(format!("the padding number {other}"))),
    }
}

fn activation(relu: bool, relu6: bool) -> Activation {
    match (relu, relu6) {
        (_, true) => Activation::Clip { min: 0.0, max: 6.0 },
        (true, false) => Activation::Relu,
        (false, false) => Activation::None,
    }
}

/// What a convolution reads: its parameters and its weights.
fn read<'a>(op: &Op<'a>) -> Result<(Shape, Weights<'a>)> {
    let of_volumes = op.has_params(CONVOLUTION_3D.table);
    let slots = match of_volumes {
        true => CONVOLUTION_3D,
        false => CONVOLUTION,
    };
    let params = op.params(slots.table)?;
    if params.table(4)?.is_some() && !of_volumes {
        return Err(unsupported("a convolution that computes in 8 bits"));
    }
    let common = params.table(0)?.unwrap_or(Params(None));
    let shape = match of_volumes {
        true => Shape::of_volumes(&common)?,
        false => Shape::flat(&common)?,
    };
    Ok((shape, Weights::of(params, slots)?))
}

/// The data with as many dimensions as the kernel needs, and the axes that were added.
fn pictured(imp: &mut Import, op: &Op, axes: usize) -> Result<(ValueId, Vec<i64>)> {
    let x = op.input(0)?;
    let rank = imp.rank(x)?;
    let missing: Vec<i64> = (rank as i64..axes as i64 + 2).collect();
    // MNN's converter writes convolutions of volumes as those of pictures, which it cannot run.
    if rank > axes + 2 {
        return Err(
            unsupported("a convolution of pictures on data of more dimensions").with_got(rank),
        );
    }
    if rank < 2 || op.layout().channels_last() && !missing.is_empty() {
        return Err(unsupported("a convolution of data of so few dimensions").with_got(rank));
    }
    Ok((imp.unsqueeze(x, &missing)?, missing))
}

fn without(imp: &mut Import, y: ValueId, axes: &[i64]) -> Result<ValueId> {
    match axes.is_empty() {
        true => Ok(y),
        false => imp.squeeze(y, axes),
    }
}

/// The channels of data, which the file may leave open.
fn channels(imp: &Import, op: &Op, x: ValueId) -> Result<Option<usize>> {
    let axis = op.layout().channel(imp.rank(x)?);
    match imp.length(x, axis as i64) {
        Dim::Known(n) => Ok(Some(n)),
        _ => Ok(None),
    }
}

/// The input channels of each group: from the number of weights, else from the data.
fn depth(
    count: Option<usize>,
    taps: Option<usize>,
    known: Option<usize>,
    shape: &Shape,
) -> Result<usize> {
    let known = known.or(Some(shape.inputs).filter(|&n| n > 0));
    match (count, taps) {
        (Some(count), Some(taps)) if taps > 0 && count > 0 && count % taps == 0 => Ok(count / taps),
        (Some(count), _) => {
            Err(invalid("the number of weights does not fit the kernel").with_got(count))
        }
        _ => known
            .map(|n| n / shape.groups)
            .ok_or_else(|| unsupported("a convolution of an unknown number of channels")),
    }
}

/// The product of a kernel and so many channels.
fn taps(kernel: &[usize], channels: usize) -> Option<usize> {
    kernel.iter().try_fold(channels, |n, &k| n.checked_mul(k))
}

/// The operators Convolution, ConvolutionDepthwise and Convolution3D.
pub fn convolution(imp: &mut Import, op: &Op, depthwise: bool) -> Outputs {
    let (mut shape, weights) = read(op)?;
    let (x, added) = pictured(imp, op, shape.kernel.len())?;
    let known = channels(imp, op, x)?;
    if depthwise && shape.outputs > 0 {
        shape.groups = shape.outputs;
    }
    let (w, bias) = match op.inputs.len() {
        0 | 1 => {
            let all = taps(&shape.kernel, shape.outputs);
            let depth = depth(weights.count()?, all, known, &shape)?;
            // Files of TensorFlow leave groups out.
            if let (1, Some(channels)) = (shape.groups, known)
                && depth > 0
                && depth < channels
                && channels % depth == 0
            {
                shape.groups = channels / depth;
            }
            let mut dims = vec![shape.outputs, depth];
            dims.extend(&shape.kernel);
            let w = weights.read(imp, &dims)?;
            let bias = weights.bias(imp, shape.outputs)?;
            (w.map_or_else(|| given(op), Ok)?, bias)
        }
        _ => {
            if depthwise && let Dim::Known(n) = imp.length(given(op)?, 0) {
                shape.groups = n;
            }
            let bias = match (op.optional(2), shape.outputs) {
                (Some(bias), _) => Some(flat(imp, bias)?),
                (None, 0) => None,
                (None, outputs) => weights.bias(imp, outputs)?,
            };
            (given(op)?, bias)
        }
    };
    let conv = Conv {
        strides: shape.strides,
        dilations: shape.dilations,
        padding: shape.padding,
        groups: shape.groups,
        channels_last: op.layout().channels_last(),
        activation: shape.activation,
    };
    let y = imp.step(conv, &[Some(x), Some(w), bias])?;
    Ok(vec![without(imp, y, &added)?])
}

/// A bias of one dimension.
fn flat(imp: &mut Import, bias: ValueId) -> Result<ValueId> {
    match imp.rank(bias)? {
        1 => Ok(bias),
        _ => imp.reshape(bias, &[-1]),
    }
}

/// The operators Deconvolution, DeconvolutionDepthwise and ConvTranspose3D.
pub fn deconvolution(imp: &mut Import, op: &Op, depthwise: bool) -> Outputs {
    let (mut shape, weights) = read(op)?;
    let (x, added) = pictured(imp, op, shape.kernel.len())?;
    let known = channels(imp, op, x)?;
    if depthwise && shape.outputs > 0 {
        shape.groups = shape.outputs;
    }
    if shape.groups == 0 || shape.outputs % shape.groups != 0 {
        return Err(invalid("the outputs do not divide into groups").with_got(shape.outputs));
    }
    let of_each = shape.outputs / shape.groups;
    let spatial = op.layout().spatial() as i64;
    let output_shape = match (shape.asked, op.inputs.last()) {
        (true, Some(&Some(asked))) => {
            let all = imp.known(asked)?;
            let all = all.ok_or_else(|| unsupported("an output whose size is computed"))?;
            // The size is that of TensorFlow's order.
            let sizes = all.get(1..=shape.kernel.len()).unwrap_or_default().iter();
            let sizes: Option<Vec<usize>> = sizes.map(|&n| usize::try_from(n).ok()).collect();
            sizes.filter(|sizes| sizes.len() == shape.kernel.len())
        }
        _ if shape.padding == Padding::SameUpper => {
            // An output of `input * stride`, whatever the kernel.
            let sizes = (0..shape.kernel.len()).map(|i| {
                let n = imp.length(x, spatial + i as i64).known()?;
                n.checked_mul(shape.strides[i])
            });
            sizes.collect()
        }
        _ => None,
    };
    let own = op.inputs.len() - usize::from(shape.asked && op.inputs.len() > 1);
    let (w, bias) = match own {
        0 | 1 => {
            let taps = taps(&shape.kernel, of_each);
            let inputs = match (weights.count()?, taps) {
                (Some(count), Some(taps)) if taps > 0 => count / taps,
                _ => known.unwrap_or(shape.inputs),
            };
            let mut dims = vec![inputs, of_each];
            dims.extend(&shape.kernel);
            let w = weights.read(imp, &dims)?;
            let bias = weights.bias(imp, shape.outputs)?;
            (w.map_or_else(|| given(op), Ok)?, bias)
        }
        2 => (given(op)?, None),
        _ => (
            given(op)?,
            op.optional(2).map(|bias| flat(imp, bias)).transpose()?,
        ),
    };
    let output_padding = match shape.more.len() {
        0 => vec![0; shape.kernel.len()],
        n if n == shape.kernel.len() => shape.more,
        _ => {
            return Err(invalid(
                "the padding of an output has another number of sides",
            ));
        }
    };
    let conv = ConvTranspose {
        strides: shape.strides,
        dilations: shape.dilations,
        padding: shape.padding,
        output_padding,
        output_shape,
        groups: shape.groups,
        channels_last: op.layout().channels_last(),
        activation: shape.activation,
    };
    let y = imp.step(conv, &[Some(x), Some(w), bias])?;
    Ok(vec![without(imp, y, &added)?])
}
