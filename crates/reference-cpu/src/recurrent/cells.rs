//! One step of each cell, for one element of the batch.

use kilim_core::Result;
use kilim_core::ops::CellActivation;
use kilim_host::CpuRun;

use crate::common::Real;

/// Operations of an element of a cell: its activations.
pub const COST: usize = 128;

/// Gates, states and parameters as a cell sees them.
pub struct Step<'a, T> {
    /// What input, recurrence and bias give for each gate; overwritten.
    pub gates: &'a mut [T],
    /// For GRU: what the recurrence gives for the candidate, with its bias.
    pub recurrent: &'a [T],
    pub h: &'a mut [T],
    pub c: &'a mut [T],
    pub peepholes: Option<&'a [T]>,
    pub activations: &'a [CellActivation],
    pub clip: Option<f32>,
}

fn activate(activation: CellActivation, x: f64) -> f64 {
    use CellActivation::*;
    match activation {
        Sigmoid => {
            let e = (-x.abs()).exp();
            if x < 0.0 {
                e / (1.0 + e)
            } else {
                1.0 / (1.0 + e)
            }
        }
        Tanh => x.tanh(),
        Relu => x.max(0.0),
        Affine { alpha, beta } => f64::from(alpha) * x + f64::from(beta),
        LeakyRelu { alpha } if x < 0.0 => f64::from(alpha) * x,
        LeakyRelu { .. } => x,
        ThresholdedRelu { alpha } if x >= f64::from(alpha) => x,
        ThresholdedRelu { .. } => 0.0,
        ScaledTanh { alpha, beta } => f64::from(alpha) * (f64::from(beta) * x).tanh(),
        HardSigmoid { alpha, beta } => (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0),
        Elu { alpha } if x < 0.0 => f64::from(alpha) * x.exp_m1(),
        Elu { .. } => x,
        Softsign => x / (1.0 + x.abs()),
        Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
    }
}

impl<T: Real> Step<'_, T> {
    fn function(&self, which: usize, x: f64) -> f64 {
        let x = match self.clip {
            Some(clip) => x.clamp(-f64::from(clip).abs(), f64::from(clip).abs()),
            None => x,
        };
        activate(self.activations[which], x)
    }

    /// Gates in the order input, output, forget, cell.
    pub fn lstm(&mut self, cpu: &CpuRun, input_forget: bool, cell_clip: Option<f32>) -> Result<()> {
        let bound = cell_clip.map_or(f64::INFINITY, |c| f64::from(c).abs());
        cpu.pieces(self.h.len(), COST, |part| {
            for j in part {
                self.lstm_element(j, input_forget, bound);
            }
            Ok(())
        })
    }

    fn lstm_element(&mut self, j: usize, input_forget: bool, bound: f64) {
        let n = self.h.len();
        let gate = |g: usize| self.gates[g * n + j].wide();
        // Peepholes are in the order input, output, forget.
        let peep = |g: usize, c: f64| self.peepholes.map_or(0.0, |p| p[g * n + j].wide() * c);
        let c = self.c[j].wide();
        let input = self.function(0, gate(0) + peep(0, c));
        let forget = match input_forget {
            true => 1.0 - input,
            false => self.function(0, gate(2) + peep(2, c)),
        };
        let next = forget * c + input * self.function(1, gate(3));
        let next = next.clamp(-bound, bound);
        let output = self.function(0, gate(1) + peep(1, next));
        self.c[j] = T::of(next);
        self.h[j] = T::of(output * activate(self.activations[2], next));
    }

    /// The update gate of a GRU; `candidate` is what the candidate's activation is applied to.
    pub fn gru_output(&mut self, j: usize, candidate: f64) {
        let update = self.function(0, self.gates[j].wide());
        let candidate = self.function(1, candidate);
        let h = self.h[j].wide();
        self.h[j] = T::of((1.0 - update) * candidate + update * h);
    }

    /// The reset gate.
    pub fn gru_reset(&self, j: usize) -> f64 {
        self.function(0, self.gates[self.h.len() + j].wide())
    }

    /// A step of a GRU with the reset gate on the result of the recurrence.
    pub fn gru_after(&mut self, cpu: &CpuRun) -> Result<()> {
        let n = self.h.len();
        cpu.pieces(n, COST, |part| {
            for j in part {
                let reset = self.gru_reset(j);
                let candidate = self.gates[2 * n + j].wide() + reset * self.recurrent[j].wide();
                self.gru_output(j, candidate);
            }
            Ok(())
        })
    }

    pub fn rnn(&mut self, cpu: &CpuRun) -> Result<()> {
        cpu.pieces(self.h.len(), COST, |part| {
            for j in part {
                self.h[j] = T::of(self.function(0, self.gates[j].wide()));
            }
            Ok(())
        })
    }
}
