//! The layer `LSTMONNX`, which is ONNX's but for the order of the results (`device/cpu/acc/cpu_lstm_layer_acc.cc`).

use kilim_core::error::unsupported;
use kilim_core::ops::{CellActivation, Direction, Lstm, Recurrent};

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::Layer;

/// Inputs: data `[time, batch, ..]`, weights `[directions, 4 * hidden, ..]` of data and state, biases, perhaps state and cell. Outputs:
/// `[time, batch, directions * hidden]`, the last state and the last cell.
pub fn lstm(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    if params.float(0.0)? != 0.0 {
        return Err(unsupported("a bound of gates"));
    }
    let hidden = params.positive(0)?;
    let direction = match params.int(0)? {
        0 => Direction::Forward,
        1 => Direction::Reverse,
        2 => Direction::Bidirectional,
        other => return Err(unsupported(format!("direction number {other}"))),
    };
    let count = direction.count();
    let gates = [
        CellActivation::Sigmoid,
        CellActivation::Tanh,
        CellActivation::Tanh,
    ];
    let op = Lstm {
        cell: Recurrent {
            hidden,
            direction,
            activations: gates.repeat(count),
            clip: None,
            batch_first: false,
        },
        input_forget: false,
        cell_clip: None,
        rounds_state: false,
    };
    let mut x = layer.input(0)?;
    match imp.rank(x)? {
        0 | 1 => return Err(invalid("data without time and batch")),
        3 => {}
        _ => x = imp.reshape(x, &[0, 0, -1])?,
    }
    let all = i64::try_from(hidden.saturating_mul(8)).unwrap_or(i64::MAX);
    let (count, hidden) = (count as i64, hidden as i64);
    let (w, r, b) = (layer.input(1)?, layer.input(2)?, layer.input(3)?);
    let weights = [
        imp.reshape(w, &[count, all / 2, -1])?,
        imp.reshape(r, &[count, all / 2, hidden])?,
        imp.reshape(b, &[count, all])?,
    ];
    let [w, r, b] = weights.map(Some);
    let mut inputs = vec![Some(x), w, r, b];
    if layer.inputs.len() >= 6 {
        inputs.extend([None, Some(layer.input(4)?), Some(layer.input(5)?)]);
    }
    let mut made = imp.apply(op, &inputs, 3)?;
    // Directions stand in front of the batch.
    made[0] = match count {
        1 => imp.squeeze(made[0], &[1])?,
        _ => {
            let y = imp.transpose(made[0], &[0, 2, 1, 3])?;
            imp.reshape(y, &[0, 0, count * hidden])?
        }
    };
    made.truncate(layer.outputs.max(1));
    Ok(made)
}
