//! An LSTM against a plain loop in float64, a GRU against its formula.

use kilim_core::ops::{Direction, Gru, Lstm, Recurrent};
use kilim_core::{DType, Tensor};
use kilim_host::testing::{assert_close, noise, tensor};

use crate::testing::run;

fn cell(hidden: usize, direction: Direction, batch_first: bool) -> Recurrent {
    Recurrent {
        hidden,
        direction,
        activations: vec![],
        clip: None,
        batch_first,
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// A plain LSTM over one sequence without batch.
fn naive_lstm(x: &[f32], w: &[f32], r: &[f32], b: &[f32], input: usize, n: usize) -> Vec<f64> {
    let (mut h, mut c, mut y) = (vec![0.0; n], vec![0.0; n], Vec::new());
    for x in x.chunks(input) {
        let gate = |g: usize, j: usize, h: &[f64]| -> f64 {
            let row = g * n + j;
            let from_x: f64 = (0..input)
                .map(|k| f64::from(x[k]) * f64::from(w[row * input + k]))
                .sum();
            let from_h: f64 = (0..n).map(|k| h[k] * f64::from(r[row * n + k])).sum();
            from_x + from_h + f64::from(b[row]) + f64::from(b[4 * n + row])
        };
        let old = h.clone();
        for j in 0..n {
            let [i, o, f, g] = [0, 1, 2, 3].map(|k| gate(k, j, &old));
            c[j] = sigmoid(f) * c[j] + sigmoid(i) * g.tanh();
            h[j] = sigmoid(o) * f64::tanh(c[j]);
        }
        y.extend(&h);
    }
    y
}

#[test]
fn lstm_directions_lengths_and_layouts() {
    let (time, batch, input, n) = (5, 2, 3, 4);
    let x = noise(time * batch * input, 1);
    let w = noise(2 * 4 * n * input, 2);
    let r = noise(2 * 4 * n * n, 3);
    let b = noise(2 * 8 * n, 4);
    let lens = tensor::<i32>(&[2], &[5, 3]);
    let (wt, rt, bt) = (
        tensor(&[2, 4 * n, input], &w),
        tensor(&[2, 4 * n, n], &r),
        tensor(&[2, 8 * n], &b),
    );
    // Time first, then the same data batch first.
    let swapped: Vec<f32> = (0..x.len())
        .map(|i| {
            let (k, t, b) = (i % input, i / input % time, i / (input * time));
            x[(t * batch + b) * input + k]
        })
        .collect();
    let layer = |batch_first, x: &Tensor, y: &[usize], h: &[usize]| {
        let op = Lstm {
            cell: cell(n, Direction::Bidirectional, batch_first),
            input_forget: false,
            cell_clip: None,
            rounds_state: false,
        };
        run(
            &op,
            &[Some(x), Some(&wt), Some(&rt), Some(&bt), Some(&lens)],
            &[(DType::F32, y), (DType::F32, h), (DType::F32, h)],
        )
        .unwrap()
    };
    let plain = layer(
        false,
        &tensor(&[time, batch, input], &x),
        &[time, 2, batch, n],
        &[2, batch, n],
    );
    let first = layer(
        true,
        &tensor(&[batch, time, input], &swapped),
        &[batch, time, 2, n],
        &[batch, 2, n],
    );
    for bi in 0..batch {
        let len = [5, 3][bi];
        for d in 0..2 {
            let mut seq: Vec<f32> = Vec::new();
            for i in 0..len {
                let t = if d == 1 { len - 1 - i } else { i };
                seq.extend(&x[(t * batch + bi) * input..][..input]);
            }
            let want = naive_lstm(
                &seq,
                &w[d * 4 * n * input..],
                &r[d * 4 * n * n..],
                &b[d * 8 * n..],
                input,
                n,
            );
            for t in 0..time {
                let step = if d == 1 { len.wrapping_sub(1 + t) } else { t };
                let want = match t < len {
                    true => want[step * n..][..n].to_vec(),
                    false => vec![0.0; n],
                };
                let y = plain[0].as_slice::<f32>().unwrap();
                assert_close(&y[((t * 2 + d) * batch + bi) * n..][..n], &want);
                let y = first[0].as_slice::<f32>().unwrap();
                assert_close(&y[((bi * time + t) * 2 + d) * n..][..n], &want);
            }
            let h = plain[1].as_slice::<f32>().unwrap();
            assert_close(&h[(d * batch + bi) * n..][..n], &want[(len - 1) * n..]);
        }
    }
}

#[test]
fn gru_resets_before_or_after() {
    // One unit, one step: h' = (1 - z) * tanh(..) + z * h, by hand.
    let x = tensor(&[1, 1, 1], &[0.5f32]);
    let w = tensor(&[1, 3, 1], &[0.3f32, -0.2, 0.7]);
    let r = tensor(&[1, 3, 1], &[0.1f32, 0.4, -0.6]);
    let b = tensor(&[1, 6], &[0.0f32, 0.0, 0.1, 0.0, 0.0, 0.2]);
    let h0 = tensor(&[1, 1, 1], &[0.9f32]);
    for after in [false, true] {
        let op = Gru {
            cell: cell(1, Direction::Forward, false),
            linear_before_reset: after,
        };
        let y = run(
            &op,
            &[Some(&x), Some(&w), Some(&r), Some(&b), None, Some(&h0)],
            &[(DType::F32, &[1, 1, 1, 1])],
        )
        .unwrap();
        let z = sigmoid(0.5 * 0.3 + 0.9 * 0.1);
        let reset = sigmoid(-0.5 * 0.2 + 0.9 * 0.4);
        let candidate = match after {
            true => 0.35 + reset * (-0.6 * 0.9 + 0.2) + 0.1,
            false => 0.35 + reset * 0.9 * -0.6 + 0.2 + 0.1,
        };
        let want = (1.0 - z) * f64::tanh(candidate) + z * 0.9;
        assert_close(y[0].as_slice().unwrap(), &[want]);
    }
}
