//! LSTM, GRU and RNN.

mod cells;
mod layer;
mod quantized;
#[cfg(test)]
mod tests;

pub use layer::{Cell, float_layer};

use kilim_core::ops::{Gru, Lstm, QuantizedLstm, Rnn};
use kilim_host::registry::{KernelRegistry, any};
use kilim_host::rules;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<Lstm>(rules::reals, |op, node, _| {
        layer::build(Cell::from(op), &op.cell, node)
    });
    registry.add::<Gru>(rules::reals, |op, node, _| {
        layer::build(Cell::from(op), &op.cell, node)
    });
    registry.add::<Rnn>(rules::reals, |op, node, _| {
        layer::build(Cell::from(op), &op.cell, node)
    });
    registry.add::<QuantizedLstm>(any, quantized::build);
}
