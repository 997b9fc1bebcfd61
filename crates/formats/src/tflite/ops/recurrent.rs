//! Recurrent layers.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{CellActivation, Concat, Direction, Lstm, Recurrent, Squeeze, Unsqueeze};
use kilim_core::tensor::Tensor;

use super::super::import::{Import, Op};

/// The order of the gates in the graph (input, output, forget, cell) by their place in TFLite's
/// (input, forget, cell, output).
const GATES: [usize; 4] = [0, 3, 1, 2];

/// The tensors of the four gates from input `first` on, one under the other.
fn gates(imp: &mut Import, op: &Op, first: usize, order: &[usize]) -> Result<ValueId> {
    let parts = order
        .iter()
        .map(|g| imp.input(op, first + g).map(Some))
        .collect::<Result<Vec<_>>>()?;
    imp.step(Concat { axis: 0 }, &parts)
}

/// Adds a dimension of 1 for the direction.
fn with_direction(imp: &mut Import, x: ValueId, axis: i64) -> Result<ValueId> {
    let axes = imp.i64s(&[axis])?;
    imp.step(Unsqueeze, &[Some(x), Some(axes)])
}

/// The second half of the bias belongs to the recurrent product; TFLite has one bias.
fn bias(imp: &mut Import, op: &Op, hidden: usize) -> Result<ValueId> {
    let mut both = Vec::new();
    for gate in GATES {
        let Some(tensor) = imp.constant_input(op, 12 + gate)? else {
            return Err(unsupported("a bias computed at run time"));
        };
        if tensor.shape() != [hidden] {
            return Err(unsupported("a bias of another size than the state"));
        }
        both.extend_from_slice(tensor.as_slice::<f32>()?);
    }
    both.resize(2 * both.len(), 0.0);
    let tensor = Tensor::from_slice(&[1, both.len()], &both)?;
    Ok(imp.node_constant("bias", tensor))
}

/// A state given by the model; `None` where it starts as zeros.
fn state(imp: &mut Import, op: &Op, i: usize, axis: i64) -> Result<Option<ValueId>> {
    if imp.is_zero_state(op, i) {
        return Ok(None);
    }
    let x = imp.input(op, i)?;
    with_direction(imp, x, axis).map(Some)
}

/// Refuses variants of the layer.
pub fn check_plain(op: &Op) -> Result<()> {
    if op.tensor(1).is_none() {
        return Err(unsupported("coupled input and forget gates"));
    }
    if op.tensor(16).is_some() {
        return Err(unsupported("a projection of the output"));
    }
    if (20..24).any(|i| op.tensor(i).is_some()) {
        return Err(unsupported("layer normalisation of the gates"));
    }
    if op.enumeration(0)? != 4 {
        return Err(unsupported("a cell activation other than tanh"));
    }
    Ok(())
}

/// Inputs: data, weights of the input 1..=4, recurrent weights 5..=8, peepholes 9..=11, biases
/// 12..=15, projection 16 and 17, states 18 and 19, layer normalisation 20..=23. States start as
/// zeros at each run.
pub fn unidirectional_lstm(imp: &mut Import, op: &Op) -> Result<()> {
    check_plain(op)?;
    let clip = op.float(1)?;
    let time_major = op.flag(3)?;
    let hidden = imp.info(op, 5)?.shape.first().copied().unwrap_or(0);
    let x = imp.input(op, 0)?;
    let parts = [gates(imp, op, 1, &GATES)?, gates(imp, op, 5, &GATES)?];
    let w = with_direction(imp, parts[0], 0)?;
    let r = with_direction(imp, parts[1], 0)?;
    let bias = bias(imp, op, hidden)?;
    let peepholes = if op.tensor(9).is_some() {
        // Input, output, forget out of input, forget, output.
        let p = gates(imp, op, 9, &[0, 2, 1])?;
        Some(with_direction(imp, p, 0)?)
    } else {
        None
    };
    let direction = if time_major { 0 } else { 1 };
    let h = state(imp, op, 18, direction)?;
    let c = state(imp, op, 19, direction)?;
    let lstm = Lstm {
        cell: Recurrent {
            hidden,
            direction: Direction::Forward,
            activations: vec![
                CellActivation::Sigmoid,
                CellActivation::Tanh,
                CellActivation::Tanh,
            ],
            clip: None,
            batch_first: !time_major,
        },
        input_forget: false,
        cell_clip: (clip > 0.0).then_some(clip),
        rounds_state: false,
    };
    let mut inputs = vec![Some(x), Some(w), Some(r), Some(bias), None, h, c, peepholes];
    while inputs.last() == Some(&None) {
        inputs.pop();
    }
    let y = imp.step(lstm, &inputs)?;
    let axes = imp.i64s(&[if time_major { 1 } else { 2 }])?;
    imp.emit(op, Squeeze, &[Some(y), Some(axes)])
}
