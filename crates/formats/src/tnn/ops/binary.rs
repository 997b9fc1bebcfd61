//! Functions of two blobs and more, or of a blob and weights (`layer/multidir_broadcast_layer.cc`).

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, UnaryKind};
use kilim_core::tensor::element_count;

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::Layer;

/// The blobs in their order: several, or one with weights, whose place among two the file says.
fn operands(imp: &mut Import, layer: &Layer) -> Result<Vec<ValueId>> {
    if layer.inputs.len() != 1 {
        return match layer.inputs.len() {
            0 => Err(invalid("input 0 is missing")),
            _ => Ok(layer.inputs.clone()),
        };
    }
    let x = layer.input(0)?;
    let place = layer.params().int(1)?;
    let weights = weights(imp, layer, x)?;
    match place {
        0 => Ok(vec![weights, x]),
        1 => Ok(vec![x, weights]),
        other => Err(invalid(format!("weights in the place of input {other}"))),
    }
}

/// Weights in a shape that broadcasts with `x`. Where the file does not give it, it follows from their number.
fn weights(imp: &mut Import, layer: &Layer, x: ValueId) -> Result<ValueId> {
    let Some(buffer) = imp.buffer(layer, 0)? else {
        // Without the file, one number stands for them: they hardly ever change the shape.
        return imp.weights(layer, 0, "weights", &[1]);
    };
    let tensor = match buffer.has_dims {
        true => buffer.tensor,
        false => {
            let dims = imp.dims(x)?;
            let shape = shape_of(&dims, buffer.len())?;
            buffer.tensor.reshaped(&shape)?
        }
    };
    let value = imp.node_constant("weights", tensor);
    imp.widened(value)
}

/// The shape of `n` numbers beside a blob: one number, one for each channel, for all but the batch, for each column, or for each pixel.
fn shape_of(dims: &[usize], n: usize) -> Result<Vec<usize>> {
    let count = |from: usize| element_count(dims.get(from..).unwrap_or_default());
    let mut shape = vec![1; dims.len()];
    if n == 1 {
        return Ok(shape);
    }
    if dims.len() < 2 {
        return Err(unsupported("weights beside a list"));
    }
    if n == dims[1] {
        shape[1] = n;
    } else if n == count(1)? {
        shape[1..].copy_from_slice(&dims[1..]);
    } else if dims.len() > 3 && n == dims[3] {
        shape[3] = n;
    } else if n == count(2)? {
        shape[2..].copy_from_slice(&dims[2..]);
    } else {
        return Err(invalid("weights are of a number that fits no dimension").with_got(n));
    }
    Ok(shape)
}

/// `kind` of all, from the first to the last.
pub fn of(imp: &mut Import, layer: &Layer, kind: BinaryKind) -> Outputs {
    let operands = operands(imp, layer)?;
    let mut y = operands[0];
    for &x in &operands[1..] {
        y = imp.binary(kind, y, x)?;
    }
    Ok(vec![y])
}

/// `(a - b)^2`.
pub fn squared_difference(imp: &mut Import, layer: &Layer) -> Outputs {
    let y = of(imp, layer, BinaryKind::Sub)?[0];
    Ok(vec![imp.mul(y, y)?])
}

pub fn equal(imp: &mut Import, layer: &Layer) -> Outputs {
    let (a, b) = (layer.input(0)?, layer.input(1)?);
    Ok(vec![imp.binary(BinaryKind::Equal, a, b)?])
}

/// Blobs of flags may be bytes.
fn flags(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    imp.cast(x, DType::Bool)
}

pub fn and(imp: &mut Import, layer: &Layer) -> Outputs {
    let operands = operands(imp, layer)?;
    let mut y = flags(imp, operands[0])?;
    for &x in &operands[1..] {
        let x = flags(imp, x)?;
        y = imp.binary(BinaryKind::And, y, x)?;
    }
    Ok(vec![y])
}

pub fn not(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = flags(imp, layer.input(0)?)?;
    Ok(vec![imp.unary(UnaryKind::Not, x)?])
}

/// The first blob where the third is not 0, else the second.
pub fn choose(imp: &mut Import, layer: &Layer) -> Outputs {
    let condition = flags(imp, layer.input(2)?)?;
    let y = imp.choose(condition, layer.input(0)?, layer.input(1)?)?;
    Ok(vec![y])
}
