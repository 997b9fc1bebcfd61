//! QuantizedLstm (TFLite's `LstmStepInteger8x8_16` and the portable `tensor_utils`).

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::fixed::{Factor, divide_by_power, logistic, tanh};
use kilim_core::ops::QuantizedLstm;

use crate::common::rules::required;
use crate::frame::{Build, Io, Kernel};

/// Bits of a gate before the point.
const GATE_BITS: u32 = 3;

pub fn build(op: &QuantizedLstm, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let shape = &required(node, 0)?.shape;
    let (batch, time) = match op.time_major {
        true => (shape[1], shape[0]),
        false => (shape[0], shape[1]),
    };
    Ok(Box::new(Layer {
        op: op.clone(),
        batch,
        time,
        n: shape[2],
    }))
}

struct Layer {
    op: QuantizedLstm,
    batch: usize,
    time: usize,
    n: usize,
}

fn saturated(x: i32) -> i16 {
    x.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// Adds a matrix times a vector, scaled, to the gates; `bias` has a number for each row.
fn accumulate(matrix: &[i8], x: &[i8], bias: &[i32], factor: Factor, gate: &mut [i16]) {
    let rows = matrix.chunks_exact(x.len().max(1)).zip(bias);
    for (gate, (row, &bias)) in gate.iter_mut().zip(rows) {
        let products = row
            .iter()
            .zip(x)
            .map(|(&w, &x)| i32::from(w) * i32::from(x));
        let sum = products.fold(bias, i32::wrapping_add);
        *gate = saturated(factor.apply(sum).saturating_add((*gate).into()));
    }
}

impl Layer {
    /// One step of one sequence.
    fn step(&self, io: &Io, x: &[i8], state: &mut [i8], cell: &mut [i16], gates: &mut [i16]) {
        let (op, h) = (&self.op, self.op.hidden);
        let (weights, recurrent) = (io.input::<i8>(1), io.input::<i8>(2));
        let biases: &[i32] = io.input(3);
        gates.fill(0);
        for (g, gate) in gates.chunks_exact_mut(h).enumerate() {
            let bias = &biases[g * h..][..h];
            let matrix = &weights[g * h * self.n..][..h * self.n];
            accumulate(matrix, x, bias, op.input[g], gate);
            let bias = &biases[(4 + g) * h..][..h];
            let matrix = &recurrent[g * h * h..][..h * h];
            accumulate(matrix, state, bias, op.recurrent[g], gate);
            for v in gate {
                let raw = i32::from(*v);
                *v = match g {
                    2 => tanh::<16>(raw, GATE_BITS),
                    _ => logistic::<16>(raw, GATE_BITS),
                } as i16;
            }
        }
        for i in 0..h {
            let [input, forget, candidate, output] =
                [0, 1, 2, 3].map(|g| i32::from(gates[g * h + i]));
            // Gates and candidate have 15 bits behind the point, the cell 15 less `cell_bits`.
            let kept = divide_by_power(forget * i32::from(cell[i]), 15) as i16;
            let new = divide_by_power(input * candidate, 15 + op.cell_bits) as i16;
            let mut sum = kept.saturating_add(new);
            if let Some(clip) = op.cell_clip {
                sum = sum.clamp(-clip, clip);
            }
            cell[i] = sum;
            let hidden = output * tanh::<16>(sum.into(), op.cell_bits);
            let scaled = op.output.apply(hidden) + i32::from(op.zero_point);
            state[i] = scaled.clamp(i8::MIN.into(), i8::MAX.into()) as i8;
        }
    }
}

impl Kernel for Layer {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y, h) = (io.input::<i8>(0), io.output::<i8>(0), self.op.hidden);
        let (cell, rest) = io.scratch::<i16>(6 * h).split_at_mut(h);
        let (gates, state) = rest.split_at_mut(4 * h);
        let state = &mut bytemuck::cast_slice_mut::<i16, i8>(state)[..h];
        for b in 0..self.batch {
            state.fill(self.op.zero_point);
            cell.fill(0);
            for t in 0..self.time {
                let at = match self.op.time_major {
                    true => t * self.batch + b,
                    false => b * self.time + t,
                };
                self.step(io, &x[at * self.n..][..self.n], state, cell, gates);
                y[at * h..][..h].copy_from_slice(state);
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        6 * self.op.hidden * size_of::<i16>()
    }
}
