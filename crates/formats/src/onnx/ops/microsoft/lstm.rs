//! The layer that onnxruntime's quantiser makes of LSTM: weights of 8 bits, and data that is rounded to 8 bits before each product.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{DequantizeLinear, DynamicQuantizeLinear, Lstm};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::ops::recurrent::{LSTM_ACTIVATIONS, recurrent};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[("DynamicQuantizeLSTM", dynamic_quantize_lstm)]);

/// Inputs: those of LSTM with the two weights transposed, then scale and zero point of either.
fn dynamic_quantize_lstm(b: &mut NodeBuilder) -> Result<()> {
    if b.has_input(4) {
        return Err(unsupported("sequences of several lengths"));
    }
    if b.int("hidden_size")?.is_none() {
        return Err(invalid("the attribute `hidden_size` is missing"));
    }
    let operator = Lstm {
        cell: recurrent(b, LSTM_ACTIVATIONS)?,
        input_forget: b.flag("input_forget")?,
        cell_clip: None,
        rounds_state: true,
    };
    let x = b.input(0)?;
    let parts = b.apply(DynamicQuantizeLinear, &[Some(x)], 3)?;
    let parts: Vec<_> = parts.into_iter().map(Some).collect();
    let x = b.apply(DequantizeLinear { axis: 1, block: 0 }, &parts, 1)?[0];
    let mut inputs = vec![Some(x), Some(weights(b, 1, 8)?), Some(weights(b, 2, 10)?)];
    for i in 3..8 {
        inputs.push(b.optional(i)?);
    }
    b.emit(operator, &inputs)
}

/// Input `i`, `[directions, n, 4 * hidden]`, as real numbers in the order of LSTM. Scale and zero point are inputs `scale` and
/// the one after it: one of each for a direction, or for each of its columns.
fn weights(b: &mut NodeBuilder, i: usize, scale: usize) -> Result<ValueId> {
    let (weights, scale, zero) = (b.input(i)?, b.input(scale)?, b.input(scale + 1)?);
    let mut parameters = [scale, b.cast_like(zero, scale)?];
    for value in &mut parameters {
        let axes: &[i64] = match b.rank(*value)? {
            1 => &[1, 2],
            2 => &[1],
            _ => return Err(invalid("the scales of the weights have another rank")),
        };
        *value = b.unsqueeze(*value, axes)?;
    }
    let [scale, zero] = parameters;
    let weights = b.cast_like(weights, scale)?;
    let centred = b.sub(weights, zero)?;
    let real = b.mul(centred, scale)?;
    b.transpose(real, &[0, 2, 1])
}
