//! Convolutions and their transposes. Weights are `[m, c / groups, kernel..]`, those of transposed ones the other way around.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Conv, ConvTranspose, Pad, PadMode, Padding};

use super::quantized::{self, Scales};
use super::window::{Around, along, around, padding};
use super::{Outputs, pointwise};
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;

const KERNEL: [i32; 3] = [1, 11, 21];
const DILATION: [i32; 3] = [2, 12, 22];
const STRIDE: [i32; 3] = [3, 13, 23];
const AROUND: [i32; 6] = [4, 15, 14, 16, 24, 17];

/// The shape of a convolution, which files give in the same parameters for all numbers of axes.
struct Shape {
    outputs: usize,
    groups: usize,
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    around: Vec<Around>,
}

impl Shape {
    fn of(layer: &Layer, axes: usize, grouped: bool) -> Result<Shape> {
        let groups = if grouped { layer.positive(7, 1)? } else { 1 };
        let outputs = layer.positive(0, 0)?;
        if outputs % groups != 0 {
            return Err(invalid(format!(
                "{outputs} channels do not divide into {groups} groups"
            )));
        }
        Ok(Shape {
            outputs,
            groups,
            kernel: along(layer, KERNEL, axes, 0)?,
            strides: along(layer, STRIDE, axes, 1)?,
            dilations: along(layer, DILATION, axes, 1)?,
            around: around(layer, AROUND, axes)?,
        })
    }

    /// The input channels of each group, which follow from the number of weights.
    fn inputs(&self, layer: &Layer) -> Result<usize> {
        let taps = self
            .kernel
            .iter()
            .try_fold(self.outputs, |n, &k| n.checked_mul(k));
        let all = layer.params.count(6, 0)?;
        match taps.filter(|taps| all > 0 && all % taps == 0) {
            Some(taps) => Ok(all / taps),
            None => Err(invalid("the number of weights does not fit the kernel").with_got(all)),
        }
    }
}

/// The layers `Convolution` and `ConvolutionDepthWise` along `axes` axes.
pub fn convolution(imp: &mut Import, layer: &Layer, axes: usize, grouped: bool) -> Outputs {
    layer
        .params
        .refuse(19, "weights that another layer computes")?;
    let mut x = layer.input(0)?;
    let shape = Shape::of(layer, axes, grouped)?;
    let mut dims = vec![shape.outputs, shape.inputs(layer)?];
    dims.extend(&shape.kernel);
    let stored = imp.stored(&dims)?;
    let bias = match layer.params.flag(5, false)? {
        true => Some(imp.plain("bias", &[shape.outputs])?),
        false => None,
    };
    let scales = match axes {
        2 => Scales::read(imp, layer, shape.outputs, shape.groups, grouped)?,
        _ => None,
    };
    let weights = match &scales {
        Some(scales) => {
            x = scales.input(imp, x)?;
            scales.weights(imp, stored)?
        }
        None => quantized::widened(imp, stored)?,
    };
    // A blob of channels alone is taken for a picture of one pixel (`src/layer/x86/convolution_x86.cpp`).
    let flat = imp.blob_rank(x)? == 1 && axes == 2 && shape.kernel == [1, 1];
    if flat {
        x = imp.unsqueeze(x, &[2, 3])?;
    }
    let (x, padding) = padded(imp, layer, x, &shape)?;
    let conv = Conv {
        strides: shape.strides,
        dilations: shape.dilations,
        padding,
        groups: shape.groups,
        channels_last: false,
        activation: Activation::None,
    };
    let mut y = imp.step(conv, &[Some(x), Some(weights), bias])?;
    if flat {
        y = imp.squeeze(y, &[2, 3])?;
    }
    y = pointwise::activated(imp, layer, y, [9, 10])?;
    if let Some(scales) = scales {
        y = scales.output(imp, y)?;
    }
    Ok(vec![y])
}

/// The data and the padding of the convolution. Where the file names a number to pad with, the data is padded before.
fn padded(
    imp: &mut Import,
    layer: &Layer,
    x: ValueId,
    shape: &Shape,
) -> Result<(ValueId, Padding)> {
    let padding = padding(&shape.around)?;
    let value = layer.params.float(18, 0.0)?;
    let Padding::Explicit(sides) = &padding else {
        return match value == 0.0 {
            true => Ok((x, padding)),
            false => Err(unsupported(
                "a padding that is found, of numbers that are not 0",
            )),
        };
    };
    if value == 0.0 || sides.iter().all(|&side| side == 0) {
        return Ok((x, padding));
    }
    let sides: Vec<i64> = sides.iter().map(|&side| side as i64).collect();
    let (begins, ends) = sides.split_at(shape.around.len());
    let pads = [&[0, 0], begins, &[0, 0], ends].concat();
    let inputs = [x, imp.i64s(&pads)?, imp.float(value)?];
    let x = imp.op(
        Pad {
            mode: PadMode::Constant,
        },
        &inputs,
    )?;
    Ok((x, Padding::Valid))
}

/// The layers `Deconvolution` and `DeconvolutionDepthWise` along `axes` axes.
pub fn deconvolution(imp: &mut Import, layer: &Layer, axes: usize, grouped: bool) -> Outputs {
    layer
        .params
        .refuse(28, "weights that another layer computes")?;
    let x = layer.input(0)?;
    let shape = Shape::of(layer, axes, grouped)?;
    let weights = transposed_weights(imp, layer, &shape)?;
    let bias = match layer.params.flag(5, false)? {
        true => Some(imp.plain("bias", &[shape.outputs])?),
        false => None,
    };
    // What is added to the output along width, height and depth.
    let more = [(18, None), (19, Some(18)), (20, Some(18))];
    let more = &more[..axes.min(2)];
    let mut output_padding = vec![0; axes - more.len()];
    for &(id, default) in more.iter().rev() {
        let default = default.map_or(Ok(0), |id| layer.params.count(id, 0))?;
        output_padding.push(layer.params.count(id, default)?);
    }
    let (padding, output_shape) = cut(layer, &shape, axes)?;
    let conv = ConvTranspose {
        strides: shape.strides,
        dilations: shape.dilations,
        padding,
        output_padding,
        output_shape,
        groups: shape.groups,
        channels_last: false,
        activation: Activation::None,
    };
    let y = imp.step(conv, &[Some(x), Some(weights), bias])?;
    Ok(vec![pointwise::activated(imp, layer, y, [9, 10])?])
}

/// What is cut off of the output, and the size that it is cut to (`Deconvolution::cut_padding`).
fn cut(layer: &Layer, shape: &Shape, axes: usize) -> Result<(Padding, Option<Vec<usize>>)> {
    let nothing = || Padding::Explicit(vec![0; 2 * axes]);
    if axes == 3 && (18..=20).any(|id| layer.params.has(id)) {
        return Err(unsupported("the size of the output"));
    }
    if shape
        .around
        .iter()
        .any(|&(begin, end)| begin > 0 || end > 0)
    {
        return Ok((padding(&shape.around)?, None));
    }
    let width = layer.params.count(20, 0)?;
    let asked = match axes {
        1 => vec![width],
        _ => vec![layer.params.count(21, width)?, width],
    };
    if asked.contains(&0) {
        return Ok((nothing(), None));
    }
    match padding(&shape.around)? {
        Padding::Explicit(_) => Err(unsupported("a size of the output without how it is cut")),
        found => Ok((found, Some(asked))),
    }
}

/// Weights `[m, c / groups, kernel..]` of the file as `[c, m / groups, kernel..]`.
fn transposed_weights(imp: &mut Import, layer: &Layer, shape: &Shape) -> Result<ValueId> {
    let (groups, inputs) = (shape.groups, shape.inputs(layer)?);
    let outputs = shape.outputs / groups;
    let mut dims = vec![groups, outputs, inputs];
    dims.extend(&shape.kernel);
    let mut weights = imp.tagged("weights", &dims)?;
    if outputs > 1 && inputs > 1 {
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.swap(1, 2);
        weights = imp.transpose(weights, &order)?;
    }
    let all = groups
        .checked_mul(inputs)
        .ok_or_else(|| invalid("too many channels"))?;
    let mut dims = vec![all as i64, outputs as i64];
    dims.extend(shape.kernel.iter().map(|&k| k as i64));
    imp.reshape(weights, &dims)
}
