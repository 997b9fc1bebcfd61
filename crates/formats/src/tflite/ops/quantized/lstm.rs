//! The long short-term memory with `int8` data and an `int16` cell state.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::fixed::Factor;
use kilim_core::graph::ValueId;
use kilim_core::ops::QuantizedLstm;
use kilim_core::tensor::Tensor;

use super::super::recurrent::check_plain;
use super::{Import, Op, Quanta, invalid};

/// Gates have 12 bits behind the point.
const GATE_SCALE: f32 = 1.0 / 4096.0;

/// The `int8` weights of a gate.
fn weights(imp: &Import, op: &Op, i: usize, shape: [usize; 2]) -> Result<(Tensor, f32)> {
    let q = Quanta::input(imp, op, i)?;
    let tensor = imp
        .constant_input(op, i)?
        .ok_or_else(|| unsupported("weights computed at run time"))?;
    if tensor.dtype() != DType::I8 || tensor.shape() != shape || q.zero_point != 0 {
        return Err(unsupported("weights that are not symmetric int8 matrices"));
    }
    Ok((tensor, q.scale))
}

/// The weights of four gates from input `first` on, one under the other, the factors of their sums,
/// and the sums of their rows.
fn gates(
    imp: &mut Import,
    op: &Op,
    first: usize,
    shape: [usize; 2],
    data: &Quanta,
) -> Result<(ValueId, [Factor; 4], Vec<i32>)> {
    let (mut all, mut sums) = (Vec::new(), Vec::new());
    let mut factors = [Factor::new(0.0)?; 4];
    for (gate, factor) in factors.iter_mut().enumerate() {
        let (tensor, scale) = weights(imp, op, first + gate, shape)?;
        *factor = Factor::new(f64::from(scale * data.scale / GATE_SCALE))?;
        let numbers = tensor.as_slice::<i8>()?;
        all.extend_from_slice(numbers);
        let rows = numbers.chunks_exact(shape[1].max(1));
        sums.extend(rows.map(|row| row.iter().map(|&w| i32::from(w)).sum::<i32>()));
    }
    let tensor = Tensor::from_slice(&[4, shape[0], shape[1]], &all)?;
    let weights = imp.node_constant(&format!("weights {first}"), tensor);
    Ok((weights, factors, sums))
}

/// Inputs as those of the float layer; intermediate tensor 4 says how the state is quantised before
/// a projection.
pub fn unidirectional(imp: &mut Import, op: &Op) -> Result<()> {
    check_plain(op)?;
    if op.tensor(9).is_some() {
        return Err(unsupported("peepholes of quantised data"));
    }
    if !imp.is_zero_state(op, 18) || !imp.is_zero_state(op, 19) {
        return Err(unsupported("a state given by the model"));
    }
    let (x, state) = (Quanta::input(imp, op, 0)?, Quanta::input(imp, op, 18)?);
    let cell = Quanta::of_any(imp.info(op, 19)?)?;
    if [x.dtype, state.dtype] != [DType::I8; 2] || cell.dtype != DType::I16 {
        return Err(unsupported(
            "an LSTM that is not int8 with an int16 cell state",
        ));
    }
    let between = Quanta::of_any(imp.intermediate(op, 4)?)?;
    let exponent = cell.scale.log2();
    let cell_bits = 15.0 + exponent;
    if exponent.fract() != 0.0 || !(0.0..=6.0).contains(&cell_bits) {
        return Err(unsupported(format!(
            "a cell state with the scale {}",
            cell.scale
        )));
    }
    if between.zero_point != state.zero_point {
        return Err(unsupported(
            "a state with another zero point than the cells' output",
        ));
    }
    let hidden = imp.info(op, 5)?.shape.first().copied().unwrap_or(0);
    let n = imp.info(op, 0)?.shape.last().copied().unwrap_or(0);
    let (w, input, input_sums) = gates(imp, op, 1, [hidden, n], &x)?;
    let (r, recurrent, state_sums) = gates(imp, op, 5, [hidden, hidden], &state)?;
    let mut biases = Vec::with_capacity(8 * hidden);
    for gate in 0..4 {
        let bias = imp.constant_input(op, 12 + gate)?;
        let bias = bias.ok_or_else(|| unsupported("a bias computed at run time"))?;
        if bias.shape() != [hidden] {
            return Err(unsupported("a bias of another size than the state"));
        }
        let sums = &input_sums[gate * hidden..][..hidden];
        let whole = bias.as_slice::<i32>()?.iter().zip(sums);
        biases.extend(whole.map(|(b, sum)| b.wrapping_sub(sum.wrapping_mul(x.zero_point))));
    }
    let of_state = |sum: &i32| sum.wrapping_mul(state.zero_point).wrapping_neg();
    biases.extend(state_sums.iter().map(of_state));
    let biases = Tensor::from_slice(&[2, 4, hidden], &biases)?;
    let biases = imp.node_constant("biases", biases);
    let clip = op.float(1)?;
    let whole_clip = (clip / cell.scale).clamp(i16::MIN.into(), i16::MAX.into());
    let lstm = QuantizedLstm {
        hidden,
        time_major: op.flag(3)?,
        input,
        recurrent,
        cell_bits: cell_bits as u32,
        cell_clip: (clip > 0.0).then_some(whole_clip as i16),
        output: Factor::new(f64::from(2f32.powi(-15) / between.scale * 2f32.powi(-15)))?,
        zero_point: i8::try_from(between.zero_point)
            .map_err(|_| invalid("the zero point of the state"))?,
    };
    let data = imp.input(op, 0)?;
    imp.emit(op, lstm, &[Some(data), Some(w), Some(r), Some(biases)])
}
