//! LSTM, GRU and RNN.

mod cells;
mod layer;
mod quantized;
#[cfg(test)]
mod tests;

use kilim_core::ops::{Gru, Lstm, QuantizedLstm, Rnn};

use crate::common::rules;
use crate::registry::{KernelRegistry, any};

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<Lstm>(rules::reals, layer::build_lstm);
    registry.add::<Gru>(rules::reals, layer::build_gru);
    registry.add::<Rnn>(rules::reals, layer::build_rnn);
    registry.add::<QuantizedLstm>(any, quantized::build);
}
