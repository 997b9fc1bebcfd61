//! Products with matrices, and recurrent layers.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, CellActivation, Direction, Lstm, MatMul, Recurrent, Rnn};
use kilim_core::tensor::Tensor;

use super::Outputs;
use crate::mnn::import::Import;
use crate::mnn::invalid;
use crate::mnn::op::Op;
use crate::mnn::weights::{INNER_PRODUCT, Weights, given};

/// The tables of parameters.
const LSTM: u8 = 24;
const MATMUL: u8 = 25;
const BATCH_MATMUL: u8 = 73;

fn product(transpose_b: bool) -> MatMul {
    MatMul {
        transpose_b,
        alpha: None,
        activation: Activation::None,
    }
}

/// The last two dimensions in the other order.
fn turned(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    let rank = imp.rank(x)?;
    if rank < 2 {
        return Ok(x);
    }
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(rank - 1, rank - 2);
    imp.transpose(x, &order)
}

/// The operators MatMul and BatchMatMul.
pub fn matmul(imp: &mut Import, op: &Op) -> Outputs {
    let (mut a, b) = (op.input(0)?, op.input(1)?);
    let (transpose_a, transpose_b) = match op.has_params(BATCH_MATMUL) {
        true => {
            let p = op.params(BATCH_MATMUL)?;
            (p.flag(0, false)?, p.flag(1, false)?)
        }
        false => {
            let p = op.params(MATMUL)?;
            if p.vector(3, 4)?.is_some() {
                return Err(unsupported("a product with weights of its own"));
            }
            (p.flag(1, false)?, p.flag(2, false)?)
        }
    };
    if transpose_a {
        a = turned(imp, a)?;
    }
    let transpose_b = transpose_b && imp.rank(b)? > 1;
    let both_lists = imp.rank(a)? == 1 && imp.rank(b)? == 1;
    let mut y = imp.step(product(transpose_b), &[Some(a), Some(b), op.optional(2)])?;
    // The product of two lists is a list of one number.
    if both_lists {
        y = imp.unsqueeze(y, &[0])?;
    }
    Ok(vec![y])
}

/// The operator InnerProduct: of all numbers of each element of the batch.
pub fn inner_product(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(INNER_PRODUCT.table)?);
    let outputs = p.positive(0, 0)?;
    if p.flag(6, false)? {
        return Err(unsupported("weights in the other order"));
    }
    let weights = Weights::of(p, INNER_PRODUCT)?;
    let count = match weights.count()? {
        Some(count) => count,
        None => p.size(2, 0)?,
    };
    if count == 0 || count % outputs != 0 {
        return Err(invalid("the weights do not divide into the outputs").with_got(count));
    }
    let inputs = count / outputs;
    let w = weights.read(imp, &[outputs, inputs])?;
    let w = w.map_or_else(|| given(op), Ok)?;
    let bias = weights.bias(imp, outputs)?;
    let x = match imp.rank(x)? {
        2 => x,
        _ => imp.reshape(x, &[0, inputs as i64])?,
    };
    Ok(vec![imp.step(product(true), &[Some(x), Some(w), bias])?])
}

/// The operators LSTM and RNN as ONNX has them, but for the bias, which is one for input and state together.
pub fn recurrent(imp: &mut Import, op: &Op, gates: usize) -> Outputs {
    if op.inputs.len() < 4 || op.outputs() < 2 {
        return Err(unsupported("a layer of Caffe, with weights of its own"));
    }
    let hidden = op.params(LSTM)?.positive(0, 0)?;
    let (x, w, r, bias) = (op.input(0)?, op.input(1)?, op.input(2)?, op.input(3)?);
    let directions = imp.length(w, 0).known();
    let (direction, directions) = match directions {
        Some(1) => (Direction::Forward, 1),
        Some(2) => (Direction::Bidirectional, 2),
        _ => return Err(unsupported("weights of an unknown number of directions")),
    };
    let size = gates.checked_mul(hidden);
    let size = size.ok_or_else(|| invalid("a state is too large"))?;
    let bias = imp.reshape(bias, &[directions as i64, size as i64])?;
    let none = imp.tensor_value(Tensor::zeros(kilim_core::DType::F32, &[directions, size])?);
    let bias = imp.concat(&[bias, none], 1)?;
    let each = match gates {
        1 => vec![CellActivation::Tanh],
        _ => vec![
            CellActivation::Sigmoid,
            CellActivation::Tanh,
            CellActivation::Tanh,
        ],
    };
    let cell = Recurrent {
        hidden,
        direction,
        activations: each.repeat(directions),
        clip: None,
        batch_first: false,
    };
    let mut inputs = vec![Some(x), Some(w), Some(r), Some(bias), None];
    inputs.extend((4..op.inputs.len()).map(|i| op.optional(i)));
    match gates {
        1 => imp.apply(Rnn { cell }, &inputs, 2),
        _ => {
            let lstm = Lstm {
                cell,
                input_forget: false,
                cell_clip: None,
                rounds_state: false,
            };
            imp.apply(lstm, &inputs, 3)
        }
    }
}
