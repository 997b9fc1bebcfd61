//! LSTM, GRU and RNN of one and several steps, in all directions.

use std::sync::Arc;

use kilim::Tensor;
use kilim::core::Operator;
use kilim::core::ops::{CellActivation, Direction, Gru, Lstm, Recurrent, Rnn};

use super::{Array, Case, Input, Random, flat};

#[derive(Clone, Copy, Debug)]
enum Cell {
    Lstm,
    Gru { linear_before_reset: bool },
    Rnn,
}

impl Cell {
    fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru { .. } => 3,
            Cell::Rnn => 1,
        }
    }

    fn activations(self) -> &'static [CellActivation] {
        use CellActivation::{Sigmoid, Tanh};
        match self {
            Cell::Lstm => &[Sigmoid, Tanh, Tanh],
            Cell::Gru { .. } => &[Sigmoid, Tanh],
            Cell::Rnn => &[Tanh],
        }
    }

    fn op(self, cell: Recurrent) -> Arc<dyn Operator> {
        match self {
            Cell::Lstm => Arc::new(Lstm {
                cell,
                input_forget: false,
                cell_clip: None,
                rounds_state: false,
            }),
            Cell::Gru {
                linear_before_reset,
            } => Arc::new(Gru {
                cell,
                linear_before_reset,
            }),
            Cell::Rnn => Arc::new(Rnn { cell }),
        }
    }

    /// One step of one unit.
    fn step(self, unit: &Unit, state: &mut State) {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let both = |gate: usize| (unit.x)(gate) + (unit.h)(gate);
        match self {
            Cell::Lstm => {
                let (input, output, forget) =
                    (sigmoid(both(0)), sigmoid(both(1)), sigmoid(both(2)));
                state.c = forget * state.c + input * both(3).tanh();
                state.h = output * state.c.tanh();
            }
            Cell::Gru {
                linear_before_reset,
            } => {
                let (update, reset) = (sigmoid(both(0)), sigmoid(both(1)));
                let past = match linear_before_reset {
                    true => reset * (unit.h)(2),
                    false => (unit.reset_h)(2),
                };
                let candidate = ((unit.x)(2) + past).tanh();
                state.h = (1.0 - update) * candidate + update * state.h;
            }
            Cell::Rnn => state.h = both(0).tanh(),
        }
    }
}

/// The sums of one unit at one step by gate, with their biases.
struct Unit<'a> {
    /// Sums over the inputs.
    x: &'a dyn Fn(usize) -> f64,
    /// Sums over the state.
    h: &'a dyn Fn(usize) -> f64,
    /// Sums over the state after its reset.
    reset_h: &'a dyn Fn(usize) -> f64,
}

#[derive(Clone, Copy)]
struct State {
    h: f64,
    c: f64,
}

struct Sizes {
    time: usize,
    batch: usize,
    input: usize,
    hidden: usize,
}

struct Layer {
    cell: Cell,
    sizes: Sizes,
    direction: Direction,
    x: Array,
    w: Array,
    r: Array,
    b: Array,
    h: Array,
    c: Array,
}

impl Layer {
    fn random(random: &mut Random, cell: Cell, sizes: Sizes, direction: Direction) -> Layer {
        let (d, rows) = (direction.count(), cell.gates() * sizes.hidden);
        // Sums that leave the gates in between open and closed.
        let mut weights = |inputs: usize| {
            let mut array = random.array(&[d, rows, inputs]);
            let scale = 1.0 / (inputs as f32).sqrt();
            array.data.iter_mut().for_each(|w| *w *= scale);
            array
        };
        let (w, r) = (weights(sizes.input), weights(sizes.hidden));
        Layer {
            x: random.array(&[sizes.time, sizes.batch, sizes.input]),
            w,
            r,
            b: random.array(&[d, 2 * rows]),
            h: random.array(&[d, sizes.batch, sizes.hidden]),
            c: random.array(&[d, sizes.batch, sizes.hidden]),
            cell,
            sizes,
            direction,
        }
    }

    /// Y, `[time, directions, batch, hidden]`.
    fn want(&self) -> (Vec<usize>, Vec<f64>) {
        let s = &self.sizes;
        let shape = vec![s.time, self.direction.count(), s.batch, s.hidden];
        let mut y = vec![0.0; shape.iter().product()];
        for d in 0..self.direction.count() {
            let backwards = d == 1 || self.direction == Direction::Reverse;
            for n in 0..s.batch {
                let first =
                    |a: &Array, unit: usize| f64::from(a.data[flat(&a.shape, &[d, n, unit])]);
                let begin = |unit| State {
                    h: first(&self.h, unit),
                    c: first(&self.c, unit),
                };
                let mut states: Vec<State> = (0..s.hidden).map(begin).collect();
                for step in 0..s.time {
                    let t = if backwards { s.time - 1 - step } else { step };
                    states = self.step(d, &[t, n], &states);
                    for (unit, state) in states.iter().enumerate() {
                        y[flat(&shape, &[t, d, n, unit])] = state.h;
                    }
                }
            }
        }
        (shape, y)
    }

    /// The states after one step of direction `d` on the input at `[time, image]`.
    fn step(&self, d: usize, at: &[usize; 2], before: &[State]) -> Vec<State> {
        let Sizes { input, hidden, .. } = self.sizes;
        let rows = self.cell.gates() * hidden;
        let bias = |row: usize| f64::from(self.b.data[flat(&self.b.shape, &[d, row])]);
        let weight = |a: &Array, row, k| f64::from(a.data[flat(&a.shape, &[d, row, k])]);
        let from_input = |row: usize| -> f64 {
            let x = |k| f64::from(self.x.data[flat(&self.x.shape, &[at[0], at[1], k])]);
            (0..input)
                .map(|k| x(k) * weight(&self.w, row, k))
                .sum::<f64>()
                + bias(row)
        };
        let from_state = |row: usize, state: &dyn Fn(usize) -> f64| -> f64 {
            let products = (0..hidden).map(|k| state(k) * weight(&self.r, row, k));
            products.sum::<f64>() + bias(rows + row)
        };
        let h = |k: usize| before[k].h;
        // Only GRU resets, by its second gate.
        let resets = matches!(self.cell, Cell::Gru { .. });
        let reset: Vec<f64> = (0..if resets { hidden } else { 0 })
            .map(|k| {
                let gate = from_input(hidden + k) + from_state(hidden + k, &h);
                h(k) / (1.0 + (-gate).exp())
            })
            .collect();
        let mut after = before.to_vec();
        for (unit, state) in after.iter_mut().enumerate() {
            let sums = Unit {
                x: &|gate| from_input(gate * hidden + unit),
                h: &|gate| from_state(gate * hidden + unit, &h),
                reset_h: &|gate| from_state(gate * hidden + unit, &|k| reset[k]),
            };
            self.cell.step(&sums, state);
        }
        after
    }

    fn case(&self) -> Case {
        let s = &self.sizes;
        let lengths = vec![s.time as i32; s.batch];
        let lengths = Tensor::from_slice(&[s.batch], &lengths).expect("one length for each image");
        let mut inputs = vec![
            self.x.fed(),
            self.w.constant(),
            self.r.constant(),
            self.b.constant(),
            Input::Constant(lengths),
            self.h.fed(),
        ];
        if matches!(self.cell, Cell::Lstm) {
            inputs.push(self.c.fed());
        }
        let cell = Recurrent {
            hidden: s.hidden,
            direction: self.direction,
            activations: self.cell.activations().repeat(self.direction.count()),
            clip: None,
            batch_first: false,
        };
        Case {
            name: format!(
                "{:?} {:?} {} steps, batch {}, {} to {} units",
                self.cell, self.direction, s.time, s.batch, s.input, s.hidden
            ),
            op: self.cell.op(cell),
            inputs,
            want: vec![self.want()],
            tolerance: 1e-5,
        }
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(7);
    let mut cases = Vec::new();
    let gru = |linear_before_reset| Cell::Gru {
        linear_before_reset,
    };
    use Direction::{Bidirectional, Forward, Reverse};
    for cell in [Cell::Lstm, gru(false), gru(true), Cell::Rnn] {
        for (direction, [time, batch, input, hidden]) in [
            (Forward, [1, 1, 3, 4]),
            (Forward, [7, 2, 5, 6]),
            (Reverse, [4, 3, 1, 9]),
            (Bidirectional, [3, 1, 10, 33]),
            // More units than a workgroup has threads.
            (Forward, [3, 1, 4, 300]),
        ] {
            let sizes = Sizes {
                time,
                batch,
                input,
                hidden,
            };
            cases.push(Layer::random(&mut random, cell, sizes, direction).case());
        }
    }
    cases
}
