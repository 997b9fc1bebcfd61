//! Which keys a query sees: biases, offsets, lengths, sinks, and scores that are no usual numbers.

use super::*;

#[test]
fn biases_broadcast() {
    on_both(check_biases_broadcast);
}

fn check_biases_broadcast() {
    for shape in [
        &[2, 6, 7, 45][..],
        &[2, 1, 7, 45],
        &[2, 1, 1, 45],
        &[6, 7, 1],
        &[7, 45],
        &[45],
        &[1],
        &[],
    ] {
        check(&plain(), &ODD.with([Given::Fed(random(shape, 4))]));
        let op = Attention {
            softcap: Some(0.8),
            causal: true,
            ..plain()
        };
        check(&op, &ODD.with([Given::Constant(random(shape, 4))]));
    }
}

#[test]
fn biases_hide_keys() {
    on_both(check_biases_hide_keys);
}

fn check_biases_hide_keys() {
    // Row i of a mask sees what is a multiple of i; row 0 nothing, row 6 what is far down.
    for hidden in [f32::NEG_INFINITY, f32::MIN] {
        let mut mask = vec![0.0; 7 * 45];
        for (at, bias) in mask.iter_mut().enumerate() {
            let (query, key) = (at / 45, at % 45);
            let seen = query > 0 && key % query == 0 && (query < 6 || key > 35);
            *bias = if seen { 0.0 } else { hidden };
        }
        for zeros in [false, true] {
            for causal in [false, true] {
                let op = Attention {
                    zeros,
                    causal,
                    ..plain()
                };
                let mask = Given::Fed(f32s(&[7, 45], &mask));
                check(&op, &ODD.with([mask.clone()]));
                let sinks = Given::Fed(random(&[6], 6));
                check(&op, &ODD.with([mask, Given::Absent, Given::Absent, sinks]));
            }
        }
    }
}

#[test]
fn offsets_lengths_and_sinks() {
    on_both(check_offsets_lengths_and_sinks);
}

fn check_offsets_lengths_and_sinks() {
    let far = i64::MAX;
    let offsets: &[&[i64]] = &[
        &[0],
        &[38],
        &[-3],
        &[-90],
        &[5, 38],
        &[far, i64::MIN],
        &[1 << 40, -1 << 40],
    ];
    for offset in offsets {
        let wide = if offset[0] == far { 1 << 40 } else { far };
        for (left, right) in [(-1, -1), (4, -1), (-1, 3), (wide, wide)] {
            let op = Attention {
                causal: right < 0,
                left,
                right,
                zeros: true,
                ..plain()
            };
            check(&op, &ODD.with([Given::Absent, fed_i64s(offset)]));
            check(&op, &ODD.with([Given::Absent, i64s(offset)]));
        }
    }
    for lengths in [[45, 45], [1, 40], [0, 33], [100, -1], [far, i64::MIN]] {
        let lengths = fed_i64s(&lengths);
        let op = Attention {
            causal: true,
            ..plain()
        };
        check(
            &op,
            &ODD.with([Given::Absent, fed_i64s(&[38]), lengths.clone()]),
        );
        let sinks = f32s(&[6], &[0.5, -0.5, 100.0, -100.0, f32::NEG_INFINITY, 0.0]);
        let given = ODD.with([Given::Absent, Given::Absent, lengths, Given::Fed(sinks)]);
        check(&plain(), &given);
    }
}

#[test]
fn what_lies_behind_a_length_may_be_anything() {
    on_both(check_what_lies_behind_a_length);
}

fn check_what_lies_behind_a_length() {
    let mut inputs = ODD.with([Given::Absent, Given::Absent, fed_i64s(&[20, 33])]);
    for i in [1, 2] {
        let Given::Fed(t) = &inputs[i] else { panic!() };
        let each = t.shape()[3];
        let mut data = t.as_slice::<f32>().unwrap().to_vec();
        for (at, x) in data.iter_mut().enumerate() {
            let (batch, key) = (at / (2 * 45 * each), at / each % 45);
            if key >= [20, 33][batch] {
                *x = if key % 2 == 0 {
                    f32::NAN
                } else {
                    f32::INFINITY
                };
            }
        }
        inputs[i] = Given::Fed(f32s(t.shape(), &data));
    }
    check(&plain(), &inputs);
}

#[test]
fn large_scores_and_no_numbers() {
    on_both(check_large_scores);
}

fn check_large_scores() {
    let op = Attention {
        scale: 1e4,
        ..plain()
    };
    check(&op, &ODD.inputs());
    let mut inputs = ODD.inputs();
    let Given::Fed(query) = &inputs[0] else {
        panic!()
    };
    let mut data = query.as_slice::<f32>().unwrap().to_vec();
    data[5] = f32::NAN;
    inputs[0] = Given::Fed(f32s(query.shape(), &data));
    check(&plain(), &inputs);
}
