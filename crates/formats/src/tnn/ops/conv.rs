//! Convolutions and their transposes (`layer/conv_layer.cc`, `layer/deconv_layer.cc`). Weights are `[outputs, inputs / groups,
//! kernel..]`, those of transposed ones `[inputs, outputs / groups, kernel..]`.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Conv, ConvTranspose, Padding, UnaryKind};

use super::window::found;
use super::{Outputs, pointwise};
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::{Layer, Params};

/// The shape of a convolution. Numbers of axes are in the order of the blob.
struct Shape {
    groups: usize,
    outputs: usize,
    kernel: Vec<usize>,
    strides: Vec<usize>,
    /// Before and behind each axis.
    pads: Vec<usize>,
    has_bias: bool,
    pad_type: i64,
    dilations: Vec<usize>,
    activation: i64,
}

impl Shape {
    fn of(params: &mut Params, axes: usize) -> Result<Shape> {
        let groups = params.positive(0)?;
        params.count(0)?;
        let outputs = params.positive(0)?;
        if outputs % groups != 0 {
            return Err(invalid(format!(
                "{outputs} channels do not divide into {groups} groups"
            )));
        }
        let (kernel, strides) = (params.positives(axes, 0)?, params.positives(axes, 0)?);
        // A line of one axis has two paddings, that of its end first.
        let pads = match axes {
            1 => {
                let (end, begin) = (params.count(0)?, params.count(0)?);
                vec![begin, end]
            }
            _ => params.counts(axes)?.repeat(2),
        };
        let has_bias = params.int(0)? != 0;
        let pad_type = params.int(0)?;
        Ok(Shape {
            groups,
            outputs,
            kernel,
            strides,
            pads,
            has_bias,
            pad_type,
            dilations: params.positives(axes, 1)?,
            activation: params.int(0)?,
        })
    }

    /// How far the kernel reaches along an axis.
    fn extent(&self, i: usize) -> Result<usize> {
        let reach = (self.kernel[i] - 1).checked_mul(self.dilations[i]);
        let extent = reach.and_then(|reach| reach.checked_add(1));
        extent.ok_or_else(|| invalid("a kernel is too large"))
    }

    fn extents(&self) -> Result<Vec<usize>> {
        (0..self.kernel.len()).map(|i| self.extent(i)).collect()
    }
}

/// The layers `Convolution`, `Convolution1D` and `Convolution3D` along `axes` axes.
pub fn convolution(imp: &mut Import, layer: &Layer, axes: usize) -> Outputs {
    let x = layer.input(0)?;
    if layer.inputs.len() > 1 {
        return Err(unsupported("another blob that is added to the result"));
    }
    let shape = Shape::of(&mut layer.params(), axes)?;
    // The file's own number of inputs is that of a group or of all, by the converter.
    let channels = imp.channels(x)?;
    if !channels.is_multiple_of(shape.groups) {
        return Err(invalid(format!(
            "{channels} channels do not divide into {} groups",
            shape.groups
        )));
    }
    let weights = weights(imp, layer, &shape, [shape.outputs, channels / shape.groups])?;
    let conv = Conv {
        padding: padding(imp, x, &shape)?,
        strides: shape.strides.clone(),
        dilations: shape.dilations.clone(),
        groups: shape.groups,
        channels_last: false,
        activation: Activation::None,
    };
    let y = imp.step(conv, &[Some(x), Some(weights[0]), weights.get(1).copied()])?;
    Ok(vec![activated(imp, y, &shape)?])
}

/// The weights, and the biases where there are any.
fn weights(
    imp: &mut Import,
    layer: &Layer,
    shape: &Shape,
    channels: [usize; 2],
) -> Result<Vec<ValueId>> {
    let dims = [&channels[..], &shape.kernel].concat();
    if let Some(scale) = layer.scale {
        return imp.weights_in_bytes(layer, scale, &dims);
    }
    let mut weights = vec![imp.weights(layer, 0, "weights", &dims)?];
    if shape.has_bias {
        weights.push(imp.weights(layer, 1, "bias", &[shape.outputs])?);
    }
    Ok(weights)
}

/// The padding: that of the file for -1.
fn padding(imp: &Import, x: ValueId, shape: &Shape) -> Result<Padding> {
    match shape.pad_type {
        -1 => Ok(Padding::Explicit(shape.pads.clone())),
        number => {
            let dims = imp.dims(x)?;
            let sizes = dims.get(2..).unwrap_or_default();
            found(number, sizes, &shape.extents()?, &shape.strides)
        }
    }
}

/// What TNN fuses a convolution with (`ActivationType` in `interpreter/layer_param.h`).
fn activated(imp: &mut Import, y: ValueId, shape: &Shape) -> Result<ValueId> {
    match shape.activation {
        0 => Ok(y),
        1 => imp.unary(UnaryKind::Relu, y),
        2 => pointwise::relu6_of(imp, y),
        0x100 => imp.unary(UnaryKind::Swish { alpha: 1.0 }, y),
        other => Err(unsupported(format!("activation number {other}"))),
    }
}

/// The layer `Deconvolution`.
pub fn deconvolution(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let shape = Shape::of(&mut layer.params(), 2)?;
    let inputs = imp.channels(x)?;
    let each = shape.outputs / shape.groups;
    let weights = weights(imp, layer, &shape, [inputs, each])?;
    let (pads, output_padding) = cut(&shape)?;
    let conv = ConvTranspose {
        strides: shape.strides.clone(),
        dilations: shape.dilations.clone(),
        padding: Padding::Explicit(pads),
        output_padding,
        output_shape: None,
        groups: shape.groups,
        channels_last: false,
        activation: Activation::None,
    };
    let y = imp.step(conv, &[Some(x), Some(weights[0]), weights.get(1).copied()])?;
    Ok(vec![activated(imp, y, &shape)?])
}

/// What is cut off of the output before and behind its axes, and what is added behind them.
fn cut(shape: &Shape) -> Result<(Vec<usize>, Vec<usize>)> {
    let (mut begins, mut ends, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for (i, &extent) in shape.extents()?.iter().enumerate() {
        let stride = shape.strides[i];
        let over = extent.checked_sub(stride);
        let short = || unsupported("strides that leave gaps between the blocks of the output");
        let (begin, end, add) = match shape.pad_type {
            -1 => (shape.pads[i], shape.pads[i], 0),
            0 => {
                let over = over.ok_or_else(short)?;
                (over / 2, over - over / 2, 0)
            }
            1 => {
                over.ok_or_else(short)?;
                (0, 0, 0)
            }
            2 => (extent - 1, extent - 1, 0),
            3 => match over {
                Some(over) => (over - over / 2, over / 2, 0),
                None => (0, 0, stride - extent),
            },
            other => return Err(unsupported(format!("padding number {other}"))),
        };
        begins.push(begin);
        ends.push(end);
        added.push(add);
    }
    begins.append(&mut ends);
    Ok((begins, added))
}
