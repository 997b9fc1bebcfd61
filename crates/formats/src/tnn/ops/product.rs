//! Products with matrices (`layer/inner_product_layer.cc`, `layer/mat_mul_layer.cc`).

use kilim_core::DType;
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, MatMul};

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::Layer;

/// The layer `InnerProduct`: all numbers from an axis on times the rows of the weights.
pub fn inner_product(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut x = layer.input(0)?;
    let mut params = layer.params();
    let outputs = params.positive(0)?;
    let has_bias = params.int(0)? != 0;
    // TNN does not look at what its converter says of transposed weights.
    params.int(0)?;
    let axis = params.int(1)?;
    let rank = imp.rank(x)?;
    let axis = usize::try_from(axis).ok().filter(|&axis| axis < rank);
    let axis = axis.ok_or_else(|| invalid("the axis of a product is none of the blob"))?;
    let inputs = match imp.buffer(layer, 0)? {
        Some(weights) => weights.len() / outputs,
        None => {
            let dims = imp.dims(x)?;
            let mut row = dims[axis..].iter();
            let row = row.try_fold(1usize, |n, &d| n.checked_mul(d));
            row.ok_or_else(|| invalid("a blob is too large"))?
        }
    };
    let (weights, bias) = match layer.scale {
        Some(scale) => {
            let made = imp.weights_in_bytes(layer, scale, &[outputs, inputs])?;
            (made[0], made.get(1).copied())
        }
        None => {
            let weights = imp.weights(layer, 0, "weights", &[outputs, inputs])?;
            let bias = match has_bias {
                true => Some(imp.weights(layer, 1, "bias", &[outputs])?),
                false => None,
            };
            (weights, bias)
        }
    };
    if axis + 1 < rank {
        let mut shape = vec![0; axis];
        shape.push(inputs as i64);
        x = imp.reshape(x, &shape)?;
    }
    Ok(vec![imp.linear(x, weights, bias)?])
}

/// The layer `MatMul` of two blobs, or of a blob and weights.
pub fn matmul(imp: &mut Import, layer: &Layer) -> Outputs {
    let (a, b) = match layer.inputs[..] {
        [a, b] => (a, b),
        [x] => {
            let place = layer.params().int(-1)?;
            let stored = imp.as_stored(layer, 0, "weights")?;
            if !stored.has_dims {
                return Err(unsupported("weights without a shape"));
            }
            if stored.dtype() == DType::I8 {
                return Err(unsupported("weights of integers"));
            }
            let weights = imp.node_constant("weights", stored.tensor);
            let weights = imp.widened(weights)?;
            match place {
                0 => (weights, x),
                1 => (x, weights),
                other => return Err(invalid(format!("weights in the place of input {other}"))),
            }
        }
        _ => return Err(invalid("a product has two sides")),
    };
    // A list is a row on the left and a column on the right.
    let (a_list, b_list) = (imp.rank(a)? == 1, imp.rank(b)? == 1);
    let a = if a_list { imp.unsqueeze(a, &[0])? } else { a };
    let b = if b_list { imp.unsqueeze(b, &[1])? } else { b };
    let product = MatMul {
        transpose_b: false,
        alpha: None,
        activation: Activation::None,
    };
    let y = imp.op(product, &[a, b])?;
    let axes: &[i64] = match (a_list, b_list) {
        (false, false) => return Ok(vec![y]),
        (true, false) => &[-2],
        (false, true) => &[-1],
        (true, true) => &[-2, -1],
    };
    Ok(vec![imp.squeeze(y, axes)?])
}
