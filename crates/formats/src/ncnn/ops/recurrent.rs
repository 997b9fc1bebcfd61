//! Recurrent layers: a row of the blob for each step.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{CellActivation, Direction, Gather, Gru, Lstm, Operator, Recurrent, Rnn};
use kilim_core::tensor::Tensor;

use super::Outputs;
use super::quantized::of_rows;
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;

/// What a kind of cell is made of.
struct Cell {
    /// The gates of the operator, each by its place among those of the file.
    gates: &'static [i64],
    /// Rows of bias in the file.
    biases: usize,
    activations: &'static [CellActivation],
    /// States that go from step to step.
    states: usize,
}

/// Weights of a layer, in the order of the operator.
struct Weights {
    cell: Recurrent,
    input: ValueId,
    recurrent: ValueId,
    /// Rows `[directions, rows, hidden]` as the file has them.
    bias: ValueId,
}

impl Cell {
    fn read(&self, imp: &mut Import, layer: &Layer) -> Result<Weights> {
        let direction = match layer.params.int(2, 0)? {
            0 => Direction::Forward,
            1 => Direction::Reverse,
            2 => Direction::Bidirectional,
            other => return Err(unsupported(format!("direction number {other}"))),
        };
        let (hidden, gates, directions) =
            (layer.positive(0, 0)?, self.gates.len(), direction.count());
        let rows = hidden
            .checked_mul(gates)
            .ok_or_else(|| invalid("too many outputs"))?;
        let size = layer
            .positive(1, 0)?
            .checked_div(directions)
            .and_then(|n| n.checked_div(rows));
        let size = size
            .filter(|&n| n > 0)
            .ok_or_else(|| invalid("the number of weights does not fit the outputs"))?;
        let input = imp.stored(&[directions, rows, size])?;
        let bias = imp.tagged("bias", &[directions, self.biases, hidden])?;
        let recurrent = imp.stored(&[directions, rows, hidden])?;
        let [input, recurrent] = match layer.params.flag(8, false)? {
            false => [of_rows(imp, input, None)?, of_rows(imp, recurrent, None)?],
            true => {
                let scales = [(); 2].map(|()| imp.plain("scales", &[directions, rows, 1]));
                let [a, b] = scales;
                [
                    of_rows(imp, input, Some(a?))?,
                    of_rows(imp, recurrent, Some(b?))?,
                ]
            }
        };
        Ok(Weights {
            cell: Recurrent {
                hidden,
                direction,
                activations: self.activations.repeat(directions),
                clip: None,
                batch_first: true,
            },
            input: self.ordered(imp, input, [directions, hidden, size])?,
            recurrent: self.ordered(imp, recurrent, [directions, hidden, hidden])?,
            bias,
        })
    }

    /// The rows of weights gate by gate in the order of the operator.
    fn ordered(
        &self,
        imp: &mut Import,
        weights: ValueId,
        [directions, hidden, size]: [usize; 3],
    ) -> Result<ValueId> {
        let gates = self.gates.len();
        if self.gates.is_sorted() {
            return Ok(weights);
        }
        let parts = [directions, gates, hidden, size].map(|n| n as i64);
        let weights = imp.reshape(weights, &parts)?;
        let weights = rows(imp, weights, self.gates)?;
        imp.reshape(weights, &[parts[0], parts[1] * parts[2], parts[3]])
    }

    /// The layer, its outputs those that the file asks for. A layer that is given no states begins with zeros.
    fn run(
        &self,
        imp: &mut Import,
        layer: &Layer,
        op: impl Operator,
        weights: &Weights,
        bias: ValueId,
    ) -> Outputs {
        let x = layer.input(0)?;
        let states = &layer.inputs[1..];
        if !matches!(states.len(), 0) && states.len() != self.states {
            return Err(unsupported("another number of states"));
        }
        let mut inputs = vec![
            Some(x),
            Some(weights.input),
            Some(weights.recurrent),
            Some(bias),
        ];
        if !states.is_empty() {
            inputs.push(None);
            inputs.extend(states.iter().copied().map(Some));
        }
        let mut made = imp.apply(op, &inputs, 1 + self.states)?;
        made[0] = imp.reshape(made[0], &[0, 0, -1])?;
        Ok(made)
    }
}

/// The rows of a list along the second axis.
fn rows(imp: &mut Import, x: ValueId, rows: &[i64]) -> Result<ValueId> {
    let rows = imp.i64s(rows)?;
    imp.op(Gather { axis: 1 }, &[x, rows])
}

/// Rows `[directions, rows, hidden]`, those of the input and then those of the state, as `[directions, rows * hidden]`.
fn joined(imp: &mut Import, parts: &[ValueId]) -> Result<ValueId> {
    let all = imp.concat(parts, 1)?;
    imp.reshape(all, &[0, -1])
}

/// Rows of zeros beside the rows of a bias.
fn zeros(imp: &mut Import, cell: &Recurrent, rows: usize) -> Result<ValueId> {
    let shape = [cell.direction.count(), rows, cell.hidden];
    let zeros = Tensor::filled(&shape, &Tensor::scalar(0f32)?)?;
    Ok(imp.node_constant("zeros", zeros))
}

pub fn lstm(imp: &mut Import, layer: &Layer) -> Outputs {
    if layer.params.int(3, layer.params.int(0, 0)?)? != layer.params.int(0, 0)? {
        return Err(unsupported("a projection of the state"));
    }
    // The file has the gates of input, forgetting, output and cell; the operator has that of output before that of forgetting.
    let cell = Cell {
        gates: &[0, 2, 1, 3],
        biases: 4,
        activations: &[
            CellActivation::Sigmoid,
            CellActivation::Tanh,
            CellActivation::Tanh,
        ],
        states: 2,
    };
    let weights = cell.read(imp, layer)?;
    let bias = rows(imp, weights.bias, cell.gates)?;
    let none = zeros(imp, &weights.cell, 4)?;
    let bias = joined(imp, &[bias, none])?;
    let op = Lstm {
        cell: weights.cell.clone(),
        input_forget: false,
        cell_clip: None,
        rounds_state: false,
    };
    cell.run(imp, layer, op, &weights, bias)
}

pub fn gru(imp: &mut Import, layer: &Layer) -> Outputs {
    // The file has the gates of reset, update and the new state; the operator has that of update first.
    let cell = Cell {
        gates: &[1, 0, 2],
        biases: 4,
        activations: &[CellActivation::Sigmoid, CellActivation::Tanh],
        states: 1,
    };
    let weights = cell.read(imp, layer)?;
    let input = rows(imp, weights.bias, cell.gates)?;
    let none = zeros(imp, &weights.cell, 2)?;
    // The last row is of the state that is reset.
    let state = rows(imp, weights.bias, &[3])?;
    let bias = joined(imp, &[input, none, state])?;
    let op = Gru {
        cell: weights.cell.clone(),
        linear_before_reset: true,
    };
    cell.run(imp, layer, op, &weights, bias)
}

pub fn rnn(imp: &mut Import, layer: &Layer) -> Outputs {
    let cell = Cell {
        gates: &[0],
        biases: 1,
        activations: &[CellActivation::Tanh],
        states: 1,
    };
    let weights = cell.read(imp, layer)?;
    let none = zeros(imp, &weights.cell, 1)?;
    let bias = joined(imp, &[weights.bias, none])?;
    let op = Rnn {
        cell: weights.cell.clone(),
    };
    cell.run(imp, layer, op, &weights, bias)
}
