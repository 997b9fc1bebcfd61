//! Convolutions and matrix products: sums of 32 bits, scaled for each output channel.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::fixed::Factor;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Conv, ConvInteger, MatMulInteger, Requantize, Transpose};

use super::super::conv;
use super::{Import, Op, Quanta, invalid};

/// How sums of products of inputs `x` and `w` become the output. Weights of `int8` may have a scale
/// for each of `channels`.
fn requantize(
    imp: &Import,
    op: &Op,
    [x, w]: [usize; 2],
    channels: usize,
    activation: Activation,
) -> Result<Requantize> {
    let (x, y) = (Quanta::input(imp, op, x)?, Quanta::output(imp, op)?);
    let weights = imp.info(op, w)?;
    let scales = match &weights.quantization {
        Some(q) if weights.dtype()?.size() == 1 => &q.scale,
        _ => return Err(unsupported("weights that are not quantised to 8 bits")),
    };
    let (x_scale, y_scale) = (f64::from(x.scale), f64::from(y.scale));
    let several = scales.len() > 1;
    if several && scales.len() != channels {
        return Err(invalid("the scales of the weights do not fit their shape"));
    }
    let factors = scales
        .iter()
        .map(|&w| {
            // A product for all channels is rounded to single precision.
            let product = if several || x.dtype == DType::I8 && op.name.contains("CONV") {
                x_scale * f64::from(w)
            } else {
                f64::from(x.scale * w)
            };
            Factor::new(product / y_scale)
        })
        .collect::<Result<_>>()?;
    y.requantize(factors, activation)
}

/// The zero point of weights, which several scales must share.
fn weights_zero(imp: &mut Import, op: &Op, w: usize) -> Result<Option<ValueId>> {
    let info = imp.info(op, w)?;
    let Some(q) = &info.quantization else {
        return Ok(None);
    };
    if q.scale.len() > 1 {
        if q.zero_point.iter().any(|&z| z != 0) {
            return Err(unsupported("weights with a zero point for each channel"));
        }
        return Ok(None);
    }
    Quanta::of(info)?.zero_value(imp)
}

/// A bias is `int32`.
fn bias(imp: &mut Import, op: &Op, i: usize) -> Result<Option<ValueId>> {
    if op.tensor(i).is_some() && imp.info(op, i)?.dtype()? != DType::I32 {
        return Err(unsupported("a bias that is not int32"));
    }
    imp.optional(op, i)
}

fn convolution(imp: &mut Import, op: &Op, (conv, weights): (Conv, ValueId)) -> Result<()> {
    let channels = imp.input_dim(op, 1, if op.name == "CONV_2D" { 0 } else { 3 })?;
    let requantize = requantize(imp, op, [0, 1], channels, conv.activation)?;
    let zero = Quanta::input(imp, op, 0)?.zero_value(imp)?;
    let inputs = [
        imp.optional(op, 0)?,
        Some(weights),
        zero,
        weights_zero(imp, op, 1)?,
        bias(imp, op, 2)?,
    ];
    let conv = Conv {
        activation: Activation::None,
        ..conv
    };
    let operator = ConvInteger {
        conv,
        requantize: Some(requantize),
    };
    imp.emit(op, operator, &inputs)
}

pub fn conv_2d(imp: &mut Import, op: &Op) -> Result<()> {
    let parts = conv::spatial(imp, op)?;
    convolution(imp, op, parts)
}

pub fn depthwise_conv_2d(imp: &mut Import, op: &Op) -> Result<()> {
    let parts = conv::depthwise(imp, op)?;
    convolution(imp, op, parts)
}

/// Weights `[m, k]`.
pub fn fully_connected(imp: &mut Import, op: &Op) -> Result<()> {
    let (x, activation) = conv::flattened(imp, op)?;
    let channels = imp.input_dim(op, 1, 0)?;
    let requantize = requantize(imp, op, [0, 1], channels, activation)?;
    let zero = Quanta::input(imp, op, 0)?.zero_value(imp)?;
    let inputs = [
        Some(x),
        Some(imp.permuted(op, 1, &[1, 0])?),
        zero,
        weights_zero(imp, op, 1)?,
        bias(imp, op, 2)?,
    ];
    let product = MatMulInteger {
        requantize: Some(requantize),
    };
    imp.emit(op, product, &inputs)
}

pub fn batch_matmul(imp: &mut Import, op: &Op) -> Result<()> {
    let requantize = requantize(imp, op, [0, 1], 1, Activation::None)?;
    let mut inputs = Vec::with_capacity(4);
    for i in [0, 1] {
        let (mut x, rank) = (imp.input(op, i)?, imp.input_rank(op, i)?);
        if op.flag(i)? && rank >= 2 {
            let mut perm: Vec<usize> = (0..rank).collect();
            perm.swap(rank - 1, rank - 2);
            x = imp.step(Transpose { perm }, &[Some(x)])?;
        }
        inputs.push(Some(x));
    }
    for i in [0, 1] {
        inputs.push(Quanta::input(imp, op, i)?.zero_value(imp)?);
    }
    let product = MatMulInteger {
        requantize: Some(requantize),
    };
    imp.emit(op, product, &inputs)
}
