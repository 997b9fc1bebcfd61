//! Products of matrices, and tables of rows.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Einsum, Gather, MatMul};

use crate::pnnx::import::Import;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::Value;
use crate::pnnx::{invalid, numbers};

pub fn linear(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let weights = imp.weights(layer, "weight", 1)?;
    let bias = imp.optional_weights(layer, "bias", 2)?;
    imp.linear(x, weights, bias)
}

fn product(imp: &mut Import, a: ValueId, b: ValueId) -> Result<ValueId> {
    let product = MatMul {
        transpose_b: false,
        alpha: None,
        activation: Activation::None,
    };
    imp.op(product, &[a, b])
}

/// The product of the operands, whatever PyTorch calls them.
pub fn matmul(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    match layer.tensors()?[..] {
        [a, b] => product(imp, a, b),
        _ => Err(invalid("a product has other operands than two")),
    }
}

/// `beta * input + alpha * (a @ b)`, with the names of both matrices.
pub fn added(imp: &mut Import, layer: &Layer, [a, b]: [&str; 2]) -> Result<ValueId> {
    let x = Value::Tensor(layer.x()?);
    let (a, b) = (layer.tensor(a, 1)?, layer.tensor(b, 2)?);
    let mut y = Value::Tensor(product(imp, a, b)?);
    let scaled = |imp: &mut Import, value: Value, key| -> Result<Value> {
        match layer.arg(key) {
            None | Some(Value::Int(1)) => Ok(value),
            Some(Value::Float(1.0)) => Ok(value),
            Some(by) => Ok(numbers::binary(imp, "mul", &value, &by)?.into()),
        }
    };
    y = scaled(imp, y, "alpha")?;
    let x = scaled(imp, x, "beta")?;
    numbers::binary(imp, "add", &x, &y)
}

pub fn einsum(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let equation = layer.word("equation")?;
    if equation.is_empty() {
        return Err(invalid("the argument `equation` is missing"));
    }
    imp.op(Einsum { equation }, &layer.tensors()?)
}

/// Rows of a table.
pub fn embedding(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let rows = layer.x()?;
    let table = imp.weights(layer, "weight", 1)?;
    imp.op(Gather { axis: 0 }, &[table, rows])
}
