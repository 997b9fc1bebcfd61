//! Windows in forms that ONNX does not have.

use kilim_core::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{AveragePool, Conv, ConvInteger, Padding};
use kilim_formats::build::GraphBuilder;

use super::Lowered;
use super::fixed::rounded_half_away;

/// The mean of bytes: that of real numbers, rounded with ties away from zero.
pub fn average_pool(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let x = node.input(0)?;
    let (Some(op), Some(dtype)) = (node.op::<AveragePool>(), b.dtype(x)) else {
        return Ok(None);
    };
    if dtype.is_float() {
        return Ok(None);
    }
    let x = b.cast(x, DType::F32)?;
    let mean = b.op(op.clone(), &[x])?;
    let mean = rounded_half_away(b, mean)?;
    Ok(Some(vec![b.cast(mean, dtype)?]))
}

pub fn conv(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<Conv>() else {
        return Ok(None);
    };
    match explicit(b, op, node)? {
        Some(op) => b.apply(op, node.inputs, 1).map(Some),
        None => Ok(None),
    }
}

pub fn conv_integer(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<ConvInteger>() else {
        return Ok(None);
    };
    let op = match explicit(b, &op.conv, node)? {
        Some(conv) => ConvInteger { conv, ..op.clone() },
        None => op.clone(),
    };
    super::fixed::conv_integer(b, node, op)
}

/// A convolution with dilated filters whose padding is found by the sizes, with its padding in numbers: onnxruntime needs it so. `None`
/// where it may stay as it is, or where sizes are not known.
fn explicit(b: &GraphBuilder, op: &Conv, node: &Lowered) -> Result<Option<Conv>> {
    let upper = match op.padding {
        Padding::SameUpper => true,
        Padding::SameLower => false,
        _ => return Ok(None),
    };
    if op.dilations.iter().all(|&d| d == 1) {
        return Ok(None);
    }
    let known = (b.known_shape(node.input(0)?), b.known_shape(node.input(1)?));
    let (Some(x), Some(w)) = known else {
        return Ok(None);
    };
    let n = op.strides.len();
    let mut pads = vec![0; 2 * n];
    for axis in 0..n {
        let sizes = (x.0.get(2 + axis), w.0.get(2 + axis));
        let sizes = sizes
            .0
            .and_then(|d| d.known())
            .zip(sizes.1.and_then(|d| d.known()));
        let Some((length, kernel)) = sizes else {
            return Ok(None);
        };
        let (stride, dilation) = (op.strides[axis], op.dilations[axis]);
        let steps = length.div_ceil(stride).saturating_sub(1);
        let covered = steps * stride + kernel.saturating_sub(1) * dilation + 1;
        let missing = covered.saturating_sub(length);
        let less = missing / 2;
        let (begin, end) = match upper {
            true => (less, missing - less),
            false => (missing - less, less),
        };
        pads[axis] = begin;
        pads[n + axis] = end;
    }
    Ok(Some(Conv {
        padding: Padding::Explicit(pads),
        ..op.clone()
    }))
}
