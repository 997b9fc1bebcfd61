//! Products with matrices (`operator/prototype/fc.c`, `matmul.c`).

use kilim_core::ops::{Activation, MatMul};

use super::Outputs;
use crate::tengine::import::Import;
use crate::tengine::invalid;
use crate::tengine::node::Node;

/// All numbers of each picture times the rows of the weights `[outputs, inputs]`. The result has as many dimensions as the data.
pub fn fully_connected(imp: &mut Import, node: &Node) -> Outputs {
    let (mut x, weights) = (node.input(0)?, node.input(1)?);
    let dims = imp.dims(weights)?;
    let [outputs, inputs] = dims[..] else {
        return Err(invalid("weights that are no matrix"));
    };
    if outputs != node.positive(0)? {
        return Err(invalid("the weights are of other outputs than the product").with_got(outputs));
    }
    let rank = imp.rank(x)?;
    if rank > 2 {
        x = imp.reshape(x, &[0, inputs as i64])?;
    }
    let bias = match node.inputs.get(2) {
        Some(&bias) => Some(imp.reshape(bias, &[outputs as i64])?),
        None => None,
    };
    let y = imp.linear(x, weights, bias)?;
    let axes: Vec<i64> = (2..rank as i64).collect();
    Ok(vec![imp.unsqueeze(y, &axes)?])
}

pub fn matmul(imp: &mut Import, node: &Node) -> Outputs {
    let product = MatMul {
        transpose_b: false,
        alpha: None,
        activation: Activation::None,
    };
    Ok(vec![imp.op(product, &[node.input(0)?, node.input(1)?])?])
}
