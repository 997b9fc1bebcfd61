//! Convolutions and their transposes (`operator/prototype/convolution.c`, `deconvolution.c`). Weights are `[outputs, inputs / groups, h,
//! w]`, those of transposed ones `[inputs, outputs / groups, h, w]`.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Conv, ConvTranspose, Padding, UnaryKind};
use kilim_core::tensor::element_count;

use super::Outputs;
use super::norm::list;
use crate::tengine::file::Table;
use crate::tengine::import::Import;
use crate::tengine::invalid;
use crate::tengine::node::Node;

/// The groups of a convolution with these parameters.
pub fn groups(params: Table) -> Result<usize> {
    let groups = usize::try_from(params.int(8)?).ok().filter(|&n| n > 0);
    groups.ok_or_else(|| invalid("a convolution has no groups"))
}

pub fn convolution(imp: &mut Import, node: &Node) -> Outputs {
    let (x, weights) = (node.input(0)?, node.input(1)?);
    // Kernels and strides of 0 are 1.
    let kernel = [node.count(0)?.max(1), node.count(1)?.max(1)];
    let strides = vec![node.count(2)?.max(1), node.count(3)?.max(1)];
    let dilations = vec![node.positive(4)?, node.positive(5)?];
    if imp.dims(weights)?.get(2..) != Some(&kernel[..]) {
        return Err(invalid(
            "the weights are of another kernel than the convolution",
        ));
    }
    let params = node.params()?;
    let [top, left, bottom, right] = [
        params.int(10)?,
        params.int(11)?,
        params.int(12)?,
        params.int(13)?,
    ];
    let padding = match (top, left) {
        (0.., 0..) => {
            let sides = [top, left, bottom, right].map(usize::try_from);
            let sides: Result<Vec<_>, _> = sides.into_iter().collect();
            Padding::Explicit(sides.map_err(|_| invalid("a padding is negative"))?)
        }
        // Tengine does not count dilations here, and lets windows begin later where strides leave numbers out.
        (-2 | -1, _)
            if top == left
                && dilations == [1, 1]
                && kernel[0] >= strides[0]
                && kernel[1] >= strides[1] =>
        {
            if top == -1 {
                Padding::SameUpper
            } else {
                Padding::SameLower
            }
        }
        _ => return Err(unsupported("paddings that are found along some axes")),
    };
    let conv = Conv {
        strides,
        dilations,
        padding,
        groups: groups(params)?,
        channels_last: false,
        activation: Activation::None,
    };
    let bias = match node.inputs.get(2) {
        Some(&bias) => Some(list(imp, bias)?),
        None => None,
    };
    let y = imp.step(conv, &[Some(x), Some(weights), bias])?;
    // As `device/cpu/op/conv/conv_kernel_ref_fp32.c` has it.
    Ok(vec![match params.int(9)? {
        number if number < 0 => y,
        1 => imp.clipped(y, -1.0, 1.0)?,
        6 => imp.clipped(y, 0.0, 6.0)?,
        _ => imp.unary(UnaryKind::Relu, y)?,
    }])
}

pub fn deconvolution(imp: &mut Import, node: &Node) -> Outputs {
    let (x, mut weights) = (node.input(0)?, node.input(1)?);
    let (outputs, groups) = (node.positive(0)?, node.positive(11)?);
    let kernel = [node.positive(1)?, node.positive(2)?];
    if outputs % groups != 0 {
        return Err(invalid("the channels do not divide into groups"));
    }
    let dims = imp.dims(weights)?;
    let inputs = imp.channels(x)?;
    let wanted = [inputs, outputs / groups, kernel[0], kernel[1]];
    if dims != wanted {
        // Tengine reads the numbers in this order whatever their shape (`device/cpu/op/deconv/deconv_ref.c`).
        if element_count(&dims)? != element_count(&wanted)? {
            return Err(invalid(
                "the weights are of another shape than the convolution",
            ));
        }
        weights = imp.reshape(weights, &wanted.map(|n| n as i64))?;
    }
    let [left, top, right, bottom] = [
        node.count(5)?,
        node.count(6)?,
        node.count(7)?,
        node.count(8)?,
    ];
    let conv = ConvTranspose {
        strides: vec![node.positive(3)?, node.positive(4)?],
        dilations: vec![node.positive(9)?, node.positive(10)?],
        padding: Padding::Explicit(vec![top, left, bottom, right]),
        output_padding: vec![node.count(13)?, node.count(14)?],
        output_shape: None,
        groups,
        channels_last: false,
        activation: Activation::None,
    };
    let bias = match node.inputs.get(2) {
        Some(&bias) => Some(list(imp, bias)?),
        None => None,
    };
    let y = imp.step(conv, &[Some(x), Some(weights), bias])?;
    Ok(vec![activated(imp, y, node.params()?.int(12)?)?])
}

/// What follows a transposed convolution (`device/cpu/op/deconv/deconv_ref.c`).
fn activated(imp: &mut Import, y: ValueId, number: i64) -> Result<ValueId> {
    match number {
        number if number < 0 => Ok(y),
        1 => imp.clipped(y, 0.0, 1.0),
        2 => imp.clipped(y, 0.0, 6.0),
        _ => imp.unary(UnaryKind::Relu, y),
    }
}
