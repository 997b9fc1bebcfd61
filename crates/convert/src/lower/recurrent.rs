//! Recurrent layers with the batch before time: onnxruntime computes with time first alone.

use std::sync::Arc;

use kilim_core::error::Result;
use kilim_core::graph::{Operator, ValueId};
use kilim_core::ops::{Gru, Lstm, Recurrent, Rnn};
use kilim_formats::build::GraphBuilder;

use super::Lowered;

/// The initial states among the inputs.
const STATES: [usize; 2] = [5, 6];

pub fn gru(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let op = node.op::<Gru>().filter(|op| op.cell.batch_first);
    let op = op.map(|op| Gru {
        cell: time_first(&op.cell),
        ..op.clone()
    });
    turned(b, node, op)
}

pub fn lstm(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let op = node.op::<Lstm>().filter(|op| op.cell.batch_first);
    let op = op.map(|op| Lstm {
        cell: time_first(&op.cell),
        ..op.clone()
    });
    turned(b, node, op)
}

pub fn rnn(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let op = node.op::<Rnn>().filter(|op| op.cell.batch_first);
    let op = op.map(|op| Rnn {
        cell: time_first(&op.cell),
    });
    turned(b, node, op)
}

fn time_first(cell: &Recurrent) -> Recurrent {
    Recurrent {
        batch_first: false,
        ..cell.clone()
    }
}

/// The layer on data with time first; `None` where it has it already.
fn turned(
    b: &mut GraphBuilder,
    node: &Lowered,
    op: Option<impl Operator>,
) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = op else {
        return Ok(None);
    };
    let mut inputs = node.inputs.to_vec();
    for i in [0].into_iter().chain(STATES) {
        if let Some(Some(x)) = inputs.get_mut(i) {
            *x = b.transpose(*x, &[1, 0, 2])?;
        }
    }
    let mut made = b.apply_shared(Arc::new(op), &inputs, node.outputs)?;
    for (i, y) in made.iter_mut().enumerate() {
        // `[time, directions, batch, hidden]`, and states `[directions, batch, hidden]`.
        let perm = if i == 0 {
            &[2, 0, 1, 3][..]
        } else {
            &[1, 0, 2]
        };
        *y = b.transpose(*y, perm)?;
    }
    Ok(Some(made))
}
