//! QuantizedLstm (TFLite's `LstmStepInteger8x8_16` and the portable `tensor_utils`).

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::fixed::{Factor, divide_by_power, logistic, tanh};
use kilim_core::ops::QuantizedLstm;
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

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
fn accumulate(
    cpu: &CpuRun,
    matrix: &[i8],
    x: &[i8],
    bias: &[i32],
    factor: Factor,
    gate: &mut [i16],
) -> Result<()> {
    let n = x.len();
    cpu.rows(gate.len(), by(gate, 1), n + 8, |piece, gate, cpu| {
        for (gate, i) in gate.iter_mut().zip(piece) {
            let (row, mut sum) = (&matrix[i * n..][..n], bias[i]);
            cpu.pieces(n, 1, |part| {
                let products = row[part.clone()].iter().zip(&x[part]);
                let products = products.map(|(&w, &x)| i32::from(w) * i32::from(x));
                sum = products.fold(sum, i32::wrapping_add);
                Ok(())
            })?;
            *gate = saturated(factor.apply(sum).saturating_add((*gate).into()));
        }
        Ok(())
    })
}

impl Layer {
    /// One step of one sequence.
    fn step(
        &self,
        io: &Io,
        x: &[i8],
        state: &mut [i8],
        cell: &mut [i16],
        gates: &mut [i16],
    ) -> Result<()> {
        let (cpu, op, h) = (io.cpu(), &self.op, self.op.hidden);
        let (weights, recurrent) = (io.input::<i8>(1), io.input::<i8>(2));
        let biases: &[i32] = io.input(3);
        gates.fill(0);
        for (g, gate) in gates.chunks_exact_mut(h).enumerate() {
            let bias = &biases[g * h..][..h];
            let matrix = &weights[g * h * self.n..][..h * self.n];
            accumulate(cpu, matrix, x, bias, op.input[g], gate)?;
            let bias = &biases[(4 + g) * h..][..h];
            let matrix = &recurrent[g * h * h..][..h * h];
            accumulate(cpu, matrix, state, bias, op.recurrent[g], gate)?;
            cpu.pieces(h, COST, |part| {
                for v in &mut gate[part] {
                    let raw = i32::from(*v);
                    *v = match g {
                        2 => tanh::<16>(raw, GATE_BITS),
                        _ => logistic::<16>(raw, GATE_BITS),
                    } as i16;
                }
                Ok(())
            })?;
        }
        cpu.pieces(h, COST, |part| {
            part.for_each(|i| self.element(i, state, cell, gates));
            Ok(())
        })
    }

    /// Element `i` of the states after a step.
    fn element(&self, i: usize, state: &mut [i8], cell: &mut [i16], gates: &[i16]) {
        let (op, h) = (&self.op, self.op.hidden);
        let [input, forget, candidate, output] = [0, 1, 2, 3].map(|g| i32::from(gates[g * h + i]));
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

/// Operations of a function in fixed point.
const COST: usize = 64;

impl Kernel for Layer {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y, h) = (io.input::<i8>(0), io.output::<i8>(0), self.op.hidden);
        let cpu = io.cpu();
        let (cell, rest) = io.scratch::<i16>(6 * h).split_at_mut(h);
        let (gates, state) = rest.split_at_mut(4 * h);
        let state = &mut bytemuck::cast_slice_mut::<i16, i8>(state)[..h];
        for b in 0..self.batch {
            cpu.spend(1)?;
            cpu.fill(state, self.op.zero_point)?;
            cpu.fill(cell, 0)?;
            for t in 0..self.time {
                cpu.spend(h.saturating_add(1))?;
                let at = match self.op.time_major {
                    true => t * self.batch + b,
                    false => b * self.time + t,
                };
                self.step(io, &x[at * self.n..][..self.n], state, cell, gates)?;
                cpu.copy(state, &mut y[at * h..][..h])?;
            }
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<i16>(self.op.hidden.saturating_mul(6))
    }
}
