//! LSTM, GRU and RNN against the CPU backend.

use super::harness::*;

fn zeros_and_bias(shape: &[usize], seed: u32) -> Given {
    Given::Fed(random(shape, seed))
}

#[test]
fn recurrent_layers() {
    use kilim_core::ops::{CellActivation, Direction, Gru, Lstm, Recurrent, Rnn};
    if gpu().is_none() {
        return;
    }
    let (time, batch, input, hidden) = (5, 3, 7, 10);
    for direction in [
        Direction::Forward,
        Direction::Reverse,
        Direction::Bidirectional,
    ] {
        for batch_first in [false, true] {
            let d = direction.count();
            let cell = |each: &[CellActivation]| Recurrent {
                hidden,
                direction,
                activations: each.repeat(d),
                clip: Some(0.9),
                batch_first,
            };
            use CellActivation::{Sigmoid, Tanh};
            let x = if batch_first {
                [batch, time, input]
            } else {
                [time, batch, input]
            };
            let state = if batch_first {
                [batch, d, hidden]
            } else {
                [d, batch, hidden]
            };
            for constant in [false, true] {
                let weights = |shape: &[usize], seed| {
                    let t = random(shape, seed);
                    if constant {
                        Given::Constant(t)
                    } else {
                        Given::Fed(t)
                    }
                };
                let given = |gates: usize, full: bool| {
                    let mut g = vec![
                        Given::Fed(random(&x, 1)),
                        weights(&[d, gates * hidden, input], 2),
                        weights(&[d, gates * hidden, hidden], 3),
                    ];
                    if full {
                        g.push(weights(&[d, 2 * gates * hidden], 4));
                        g.push(Given::Absent);
                        g.push(zeros_and_bias(&state, 5));
                        if gates == 4 {
                            g.push(zeros_and_bias(&state, 6));
                        }
                    }
                    g
                };
                for full in [false, true] {
                    let lstm = Lstm {
                        cell: cell(&[Sigmoid, Tanh, Tanh]),
                        input_forget: false,
                        cell_clip: full.then_some(0.5),
                        rounds_state: false,
                    };
                    agree(lstm, &given(4, full), 3, 1e-5);
                    let gru = Gru {
                        cell: cell(&[Sigmoid, Tanh]),
                        linear_before_reset: full == constant,
                    };
                    agree(gru, &given(3, full), 2, 1e-5);
                    let rnn = Rnn {
                        cell: cell(&[Tanh]),
                    };
                    agree(rnn, &given(1, full), 2, 1e-5);
                }
            }
        }
    }
}
