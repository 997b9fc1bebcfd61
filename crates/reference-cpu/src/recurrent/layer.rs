//! The loop over directions, time and batch.

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::value_error;
use kilim_core::ops::{CellActivation, Direction, Gru, Lstm, Recurrent, RecurrentGeometry, Rnn};
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{CpuRun, Io, Kernel, Scratch, by};

use super::cells::{COST, Step};
use crate::by_real;
use crate::common::Real;
use crate::quant::Dynamic;

/// Which cell a layer has, and what only that one can do.
#[derive(Clone, Copy, PartialEq)]
pub enum Cell {
    /// Four gates, a state and a cell.
    Lstm {
        /// The forget gate is one minus the input gate.
        input_forget: bool,
        /// Bounds the cell of every step to plus and minus this.
        cell_clip: Option<f32>,
        /// The state is rounded to 8 bits before its product.
        rounds_state: bool,
    },
    /// Three gates and a state.
    Gru {
        /// The reset gate is applied to the result of the recurrence, not to the state.
        after: bool,
    },
    /// One gate, which is the state.
    Rnn,
}

impl Cell {
    fn gates(self) -> usize {
        match self {
            Cell::Lstm { .. } => 4,
            Cell::Gru { .. } => 3,
            Cell::Rnn => 1,
        }
    }

    /// Activations of one direction, and what they are where the model does not say.
    fn activations(self) -> &'static [CellActivation] {
        use CellActivation::{Sigmoid, Tanh};
        match self {
            Cell::Lstm { .. } => &[Sigmoid, Tanh, Tanh],
            Cell::Gru { .. } => &[Sigmoid, Tanh],
            Cell::Rnn => &[Tanh],
        }
    }
}

impl From<&Lstm> for Cell {
    fn from(op: &Lstm) -> Cell {
        Cell::Lstm {
            input_forget: op.input_forget,
            cell_clip: op.cell_clip,
            rounds_state: op.rounds_state,
        }
    }
}

impl From<&Gru> for Cell {
    fn from(op: &Gru) -> Cell {
        Cell::Gru {
            after: op.linear_before_reset,
        }
    }
}

impl From<&Rnn> for Cell {
    fn from(_: &Rnn) -> Cell {
        Cell::Rnn
    }
}

/// Adds the product of a matrix, whose rows are as long as the second argument, with it to the third.
type AddProduct<T> = fn(&CpuRun, &[T], &[T], &mut [T]) -> Result<()>;

/// The kernel of a layer.
pub fn build(cell: Cell, op: &Recurrent, node: &NodeSpec) -> Result<Box<dyn Kernel>> {
    by_real!(required(node, 0)?.dtype, T => Layer::<T>::boxed(cell, op, node, add_product))
}

/// The kernel of a layer in float32, with another product than the plain one.
pub fn float_layer(
    cell: Cell,
    op: &Recurrent,
    node: &NodeSpec,
    add_product: AddProduct<f32>,
) -> Result<Box<dyn Kernel>> {
    Layer::<f32>::boxed(cell, op, node, add_product)
}

impl<T: Real> Layer<T> {
    fn boxed(
        cell: Cell,
        op: &Recurrent,
        node: &NodeSpec,
        add_product: AddProduct<T>,
    ) -> Result<Box<dyn Kernel>> {
        let (geometry, activations) = plan(cell, op, node)?;
        Ok(Box::new(Layer::<T> {
            cell,
            geometry,
            activations,
            clip: op.clip,
            reversed: op.direction == Direction::Reverse,
            lengths: node.input(4).map(|s| i64::codec(s.dtype)),
            add_product,
        }))
    }
}

/// Sizes, and the activations of all directions.
fn plan(
    cell: Cell,
    op: &Recurrent,
    node: &NodeSpec,
) -> Result<(RecurrentGeometry, Vec<CellActivation>)> {
    let (x, w, r) = (required(node, 0)?, required(node, 1)?, required(node, 2)?);
    let geometry = RecurrentGeometry::new(op, cell.gates(), &x.shape, &w.shape, &r.shape)?;
    let defaults = cell.activations();
    let activations = (0..defaults.len() * geometry.directions).map(|i| {
        let given = op.activations.get(i).copied();
        given.unwrap_or(defaults[i % defaults.len()])
    });
    Ok((geometry, activations.collect()))
}

struct Layer<T> {
    cell: Cell,
    geometry: RecurrentGeometry,
    activations: Vec<CellActivation>,
    clip: Option<f32>,
    /// The first direction runs backwards.
    reversed: bool,
    lengths: Option<Codec<i64>>,
    add_product: AddProduct<T>,
}

/// The plain product.
fn add_product<T: Real>(cpu: &CpuRun, rows: &[T], x: &[T], y: &mut [T]) -> Result<()> {
    let n = x.len();
    if n == 0 {
        return Ok(());
    }
    cpu.rows(y.len(), by(y, 1), n, |piece, y, cpu| {
        for (y, row) in y.iter_mut().zip(rows[piece.start * n..].chunks_exact(n)) {
            let mut sum = y.wide();
            cpu.pieces(n, 1, |part| {
                let terms = row[part.clone()].iter().zip(&x[part]);
                sum = terms.fold(sum, |sum, (a, b)| sum + a.wide() * b.wide());
                Ok(())
            })?;
            *y = T::of(sum);
        }
        Ok(())
    })
}

/// A state as 8 bits can hold it.
fn rounded<'a, T: Real>(cpu: &CpuRun, state: &[T], into: &'a mut [T]) -> Result<&'a [T]> {
    let number = |i: usize| state[i].wide() as f32;
    let parameters = Dynamic::parameters(cpu, state.len(), number)?;
    for (to, h) in into.iter_mut().zip(state) {
        *to = T::of(parameters.rounded(h.wide() as f32).into());
    }
    Ok(into)
}

/// Weights of one direction.
struct Weights<'a, T> {
    w: &'a [T],
    r: &'a [T],
    /// The biases of the input, then those of the recurrence.
    bias: Option<&'a [T]>,
    peepholes: Option<&'a [T]>,
}

impl<T: Real> Layer<T> {
    /// Where state `(d, b)` of a tensor of states is.
    fn state(&self, d: usize, b: usize) -> usize {
        let g = &self.geometry;
        let place = match g.batch_first {
            true => b * g.directions + d,
            false => d * g.batch + b,
        };
        place * g.hidden
    }

    fn x_at(&self, t: usize, b: usize) -> usize {
        let g = &self.geometry;
        let place = match g.batch_first {
            true => b * g.time + t,
            false => t * g.batch + b,
        };
        place * g.input
    }

    fn y_at(&self, t: usize, d: usize, b: usize) -> usize {
        let g = &self.geometry;
        let place = match g.batch_first {
            true => (b * g.time + t) * g.directions + d,
            false => (t * g.directions + d) * g.batch + b,
        };
        place * g.hidden
    }

    fn step(
        &self,
        cpu: &CpuRun,
        d: usize,
        weights: &Weights<T>,
        x: &[T],
        scratch: &mut [T],
    ) -> Result<()> {
        let n = self.geometry.hidden;
        cpu.spend(n)?;
        let gates_len = self.cell.gates() * n;
        let (h, rest) = scratch.split_at_mut(n);
        let (c, rest) = rest.split_at_mut(n);
        let (gates, recurrent) = rest.split_at_mut(gates_len);
        match weights.bias {
            Some(bias) => gates.copy_from_slice(&bias[..gates_len]),
            None => gates.fill(T::default()),
        }
        (self.add_product)(cpu, weights.w, x, gates)?;
        let own = match self.cell {
            // The candidate's recurrence waits for the reset gate.
            Cell::Gru { .. } => 2 * n,
            _ => gates_len,
        };
        let recurrent_bias = weights.bias.map(|b| &b[gates_len..]);
        if let Some(bias) = recurrent_bias {
            for (g, &b) in gates[..own].iter_mut().zip(bias) {
                *g += b;
            }
        }
        let recurrent = &mut recurrent[..n];
        let state = match self.cell {
            Cell::Lstm {
                rounds_state: true, ..
            } => rounded(cpu, h, recurrent)?,
            _ => h,
        };
        (self.add_product)(cpu, &weights.r[..own * n], state, &mut gates[..own])?;
        let per_direction = self.cell.activations().len();
        let candidate = &weights.r[own * n..];
        match recurrent_bias {
            Some(bias) if own < gates_len => recurrent.copy_from_slice(&bias[own..]),
            _ => recurrent.fill(T::default()),
        }
        let mut step = Step {
            gates,
            recurrent: &[],
            h,
            c,
            peepholes: weights.peepholes,
            activations: &self.activations[d * per_direction..][..per_direction],
            clip: self.clip,
        };
        match self.cell {
            Cell::Lstm {
                input_forget,
                cell_clip,
                ..
            } => step.lstm(cpu, input_forget, cell_clip)?,
            Cell::Rnn => step.rnn(cpu)?,
            Cell::Gru { after: true } => {
                (self.add_product)(cpu, candidate, step.h, recurrent)?;
                step.recurrent = recurrent;
                step.gru_after(cpu)?;
            }
            Cell::Gru { after: false } => {
                // The state that the reset gate lets through, in the room of the cell state that a
                // GRU does not have.
                cpu.pieces(n, COST, |part| {
                    for j in part {
                        step.c[j] = T::of(step.gru_reset(j) * step.h[j].wide());
                    }
                    Ok(())
                })?;
                (self.add_product)(cpu, candidate, step.c, recurrent)?;
                cpu.pieces(n, COST, |part| {
                    for j in part {
                        let sum = step.gates[2 * n + j] + recurrent[j];
                        step.gru_output(j, sum.wide());
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn length(&self, io: &Io, b: usize) -> Result<usize> {
        let Some(codec) = &self.lengths else {
            return Ok(self.geometry.time);
        };
        let length = codec.get(io.input_bytes(4), b);
        usize::try_from(length)
            .ok()
            .filter(|&l| l <= self.geometry.time)
            .ok_or_else(|| {
                value_error("a sequence's length is out of range")
                    .with_expected(format!("0..={}", self.geometry.time))
                    .with_got(length)
            })
    }

    fn scratch_len(&self) -> usize {
        (self.geometry.hidden).saturating_mul(3 + self.cell.gates())
    }
}

impl<T: Real> Kernel for Layer<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let g = self.geometry;
        let n = g.hidden;
        let x = io.input::<T>(0);
        let (w, r, bias) = (io.input::<T>(1), io.input::<T>(2), io.optional::<T>(3));
        let first_h = io.optional::<T>(5);
        let lstm = matches!(self.cell, Cell::Lstm { .. });
        let first_c = if lstm { io.optional::<T>(6) } else { None };
        let peepholes = if lstm { io.optional::<T>(7) } else { None };
        let scratch = io.scratch::<T>(self.scratch_len());
        let cpu = io.cpu();
        let mut outputs = [0, 1, 2].map(|o| io.has_output(o).then(|| io.output::<T>(o)));
        let [y, last_h, last_c] = &mut outputs;
        if let Some(y) = y {
            cpu.fill(y, T::default())?;
        }
        let (rows, biases) = (g.gates * n, 2 * g.gates * n);
        for d in 0..g.directions {
            let weights = Weights {
                w: &w[d * rows * g.input..][..rows * g.input],
                r: &r[d * rows * n..][..rows * n],
                bias: bias.map(|b| &b[d * biases..][..biases]),
                peepholes: peepholes.map(|p| &p[d * 3 * n..][..3 * n]),
            };
            let backwards = self.reversed || d == 1;
            for b in 0..g.batch {
                cpu.spend(n.saturating_add(1))?;
                let state = self.state(d, b);
                for (first, at) in [(first_h, 0), (first_c, n)] {
                    match first {
                        Some(first) => scratch[at..at + n].copy_from_slice(&first[state..][..n]),
                        None => scratch[at..at + n].fill(T::default()),
                    }
                }
                let length = self.length(io, b)?;
                for i in 0..length {
                    let t = if backwards { length - 1 - i } else { i };
                    let x = &x[self.x_at(t, b)..][..g.input];
                    self.step(cpu, d, &weights, x, scratch)?;
                    if let Some(y) = y {
                        y[self.y_at(t, d, b)..][..n].copy_from_slice(&scratch[..n]);
                    }
                }
                for (last, at) in [(&mut *last_h, 0), (&mut *last_c, n)] {
                    if let Some(last) = last {
                        last[state..][..n].copy_from_slice(&scratch[at..at + n]);
                    }
                }
            }
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<T>(self.scratch_len())
    }
}
