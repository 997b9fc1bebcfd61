use kilim_core::ops::{Align, Attention};
use kilim_core::{DType, Tensor};
use kilim_host::testing::{assert_close, tensor};

use crate::testing::run;

/// Attention of one head of one number, where query and keys are `ln 2` and powers of two are the weights.
fn attended(op: &Attention, queries: usize, more: [Option<&Tensor>; 4]) -> Vec<f32> {
    let query = tensor(&[1, 1, queries, 1], &vec![std::f32::consts::LN_2; queries]);
    let key = tensor(&[1, 1, 4, 1], &[0.0f32, 1.0, 2.0, 3.0]);
    let value = tensor(&[1, 1, 4, 1], &[8.0f32, 40.0, -2.0, 1.0]);
    let mut inputs = vec![Some(&query), Some(&key), Some(&value)];
    inputs.extend(more);
    let shape = [1, 1, queries, 1];
    let out = run(op, &inputs, &[(DType::F32, &shape)]).unwrap();
    out[0].as_slice::<f32>().unwrap().to_vec()
}

/// The mean of the values from `first` to before `end` by their weights, and by that of a sink.
fn mean(first: usize, end: usize, sink: f64) -> f64 {
    let (weights, values) = ([1.0, 2.0, 4.0, 8.0], [8.0, 40.0, -2.0, 1.0]);
    let sum: f64 = (first..end).map(|j| weights[j] * values[j]).sum();
    sum / (sink + weights[first..end].iter().sum::<f64>())
}

const NONE: [Option<&Tensor>; 4] = [None; 4];

#[test]
fn which_keys_are_seen() {
    let plain = Attention::default();
    assert_close(&attended(&plain, 2, NONE), &[mean(0, 4, 0.0); 2]);
    let causal = Attention {
        causal: true,
        ..plain.clone()
    };
    assert_close(
        &attended(&causal, 3, NONE),
        &[mean(0, 1, 0.0), mean(0, 2, 0.0), mean(0, 3, 0.0)],
    );
    let end = Attention {
        align: Align::End,
        ..causal.clone()
    };
    assert_close(
        &attended(&end, 2, NONE),
        &[mean(0, 3, 0.0), mean(0, 4, 0.0)],
    );
    let windows = Attention {
        left: 1,
        right: 1,
        ..plain.clone()
    };
    let offset = tensor(&[1], &[1i64]);
    assert_close(
        &attended(&windows, 2, [None, Some(&offset), None, None]),
        &[mean(0, 3, 0.0), mean(1, 4, 0.0)],
    );
    let lengths = tensor(&[1], &[2i64]);
    assert_close(
        &attended(&plain, 1, [None, None, Some(&lengths), None]),
        &[mean(0, 2, 0.0)],
    );
    let sinks = tensor(&[1], &[0.0f32]);
    assert_close(
        &attended(&plain, 1, [None, None, None, Some(&sinks)]),
        &[mean(0, 4, 1.0)],
    );
}

#[test]
fn queries_that_see_nothing() {
    let offset = tensor(&[1], &[-1i64]);
    let before = [None, Some(&offset), None, None];
    let mut op = Attention {
        causal: true,
        ..Attention::default()
    };
    let y = attended(&op, 2, before);
    assert!(y[0].is_nan());
    assert_close(&y[1..], &[8.0]);
    op.zeros = true;
    assert_close(&attended(&op, 2, before), &[0.0, 8.0]);
    // A bias that hides all does the same, and a score that is no number is not nothing.
    let hidden = tensor(&[1], &[f32::NEG_INFINITY]);
    let bias = [Some(&hidden), None, None, None];
    op.causal = false;
    assert_close(&attended(&op, 1, bias), &[0.0]);
    op.zeros = false;
    assert!(attended(&op, 1, bias)[0].is_nan());
    op.zeros = true;
    let nan = tensor(&[1], &[f32::NAN]);
    assert!(attended(&op, 1, [Some(&nan), None, None, None])[0].is_nan());
    // A sink takes all.
    let sinks = tensor(&[1], &[0.0f32]);
    op.zeros = false;
    assert_close(
        &attended(&op, 1, [Some(&hidden), None, None, Some(&sinks)]),
        &[0.0],
    );
    // Places that no tensor has.
    for far in [i64::MIN, i64::MAX] {
        let far = tensor(&[1], &[far]);
        let op = Attention {
            causal: true,
            left: i64::MAX,
            right: i64::MAX,
            zeros: true,
            ..Attention::default()
        };
        attended(&op, 2, [None, Some(&far), None, None]);
        attended(&op, 2, [None, Some(&far), Some(&far), None]);
    }
}
