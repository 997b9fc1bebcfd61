//! Operators that move elements.

use std::sync::Arc;

use kilim::core::ops::{
    Concat, DepthToSpace, Expand, Gather, Pad, PadMode, Slice, Tile, Transpose,
};
use kilim::core::{Operator, Tensor};

use super::{Array, Case, Input, Random, each_index, flat, ints};

/// The output element at an index is the input element at `from(index)`, or zero.
fn gathered(
    name: String,
    op: impl Operator,
    x: &Array,
    rest: Vec<Input>,
    shape: &[usize],
    from: impl Fn(&[usize]) -> Option<Vec<usize>>,
) -> Case {
    let mut want = Vec::new();
    each_index(shape, |index| {
        want.push(from(index).map_or(0.0, |at| f64::from(x.data[flat(&x.shape, &at)])));
    });
    let mut inputs = vec![x.fed()];
    inputs.extend(rest);
    Case {
        name,
        op: Arc::new(op),
        inputs,
        want: vec![(shape.to_vec(), want)],
        tolerance: 0.0,
    }
}

fn transposes(random: &mut Random, cases: &mut Vec<Case>) {
    let list: [(&[usize], &[usize]); 7] = [
        (&[3, 5], &[1, 0]),
        (&[2, 3, 4], &[2, 0, 1]),
        (&[2, 5, 7, 9], &[0, 2, 3, 1]),
        (&[2, 7, 9, 5], &[0, 3, 1, 2]),
        (&[1, 33, 70], &[0, 2, 1]),
        (&[2, 3, 2, 3, 2], &[4, 1, 3, 0, 2]),
        (&[3, 0, 2], &[1, 2, 0]),
    ];
    for (shape, perm) in list {
        let x = random.array(shape);
        let out: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
        let op = Transpose {
            perm: perm.to_vec(),
        };
        cases.push(gathered(
            format!("Transpose {shape:?} {perm:?}"),
            op,
            &x,
            Vec::new(),
            &out,
            |index| {
                let mut at = vec![0; index.len()];
                for (i, &p) in perm.iter().enumerate() {
                    at[p] = index[i];
                }
                Some(at)
            },
        ));
    }
}

fn slices(random: &mut Random, cases: &mut Vec<Case>) {
    let x = random.array(&[4, 9, 5]);
    let one = |start: i64, end: i64, axis: i64, step: i64| {
        vec![ints(&[start]), ints(&[end]), ints(&[axis]), ints(&[step])]
    };
    let name = |what: &str| format!("Slice {what}");
    cases.push(gathered(
        name("forward"),
        Slice,
        &x,
        one(2, 8, 1, 3),
        &[4, 2, 5],
        |i| Some(vec![i[0], 2 + 3 * i[1], i[2]]),
    ));
    cases.push(gathered(
        name("backward"),
        Slice,
        &x,
        one(-1, i64::MIN, -2, -2),
        &[4, 5, 5],
        |i| Some(vec![i[0], 8 - 2 * i[1], i[2]]),
    ));
    cases.push(gathered(
        name("empty"),
        Slice,
        &x,
        one(3, 3, 0, 1),
        &[0, 9, 5],
        |_| None,
    ));
    let pads = vec![ints(&[1, 0, 2, 0, 3, 1])];
    let op = Pad {
        mode: PadMode::Constant,
    };
    cases.push(gathered(
        "Pad constant".into(),
        op,
        &x,
        pads,
        &[5, 12, 8],
        |i| {
            let at = [i[0].wrapping_sub(1), i[1], i[2].wrapping_sub(2)];
            (at[0] < 4 && at[1] < 9 && at[2] < 5).then(|| at.to_vec())
        },
    ));
    let pads = vec![ints(&[0, 2, 0, 0, 3, 0])];
    let op = Pad {
        mode: PadMode::Reflect,
    };
    cases.push(gathered(
        "Pad reflect".into(),
        op,
        &x,
        pads,
        &[4, 14, 5],
        |i| {
            let y = (i[1] as i64 - 2).abs();
            let y = if y > 8 { 16 - y } else { y };
            Some(vec![i[0], y as usize, i[2]])
        },
    ));
    let shape = vec![ints(&[3, 4, 9, 5])];
    cases.push(gathered(
        "Expand".into(),
        Expand,
        &x,
        shape,
        &[3, 4, 9, 5],
        |i| Some(i[1..].to_vec()),
    ));
    let repeats = vec![ints(&[2, 1, 3])];
    cases.push(gathered(
        "Tile".into(),
        Tile,
        &x,
        repeats,
        &[8, 9, 15],
        |i| Some(vec![i[0] % 4, i[1], i[2] % 5]),
    ));
}

fn gathers(random: &mut Random, cases: &mut Vec<Case>) {
    let x = random.array(&[4, 9, 5]);
    let rows: [i64; 6] = [0, 8, -1, 3, -9, 3];
    let indices = Tensor::from_slice(&[2, 3], &rows).expect("the suite's arrays are well formed");
    cases.push(gathered(
        "Gather axis 1".into(),
        Gather { axis: 1 },
        &x,
        vec![Input::Fed(indices)],
        &[4, 2, 3, 5],
        |i| {
            let row = rows[i[1] * 3 + i[2]].rem_euclid(9) as usize;
            Some(vec![i[0], row, i[3]])
        },
    ));
    let y = random.array(&[4, 2, 5]);
    let mut want = Vec::new();
    each_index(&[4, 11, 5], |i| {
        let v = if i[1] < 9 {
            x.data[flat(&x.shape, i)]
        } else {
            y.data[flat(&y.shape, &[i[0], i[1] - 9, i[2]])]
        };
        want.push(f64::from(v));
    });
    cases.push(Case {
        name: "Concat axis -2".into(),
        op: Arc::new(Concat { axis: -2 }),
        inputs: vec![x.fed(), y.fed()],
        want: vec![(vec![4, 11, 5], want)],
        tolerance: 0.0,
    });
    let d = random.array(&[2, 8, 3, 5]);
    let op = DepthToSpace {
        block: 2,
        crd: true,
        channels_last: false,
    };
    cases.push(gathered(
        "DepthToSpace CRD".into(),
        op,
        &d,
        Vec::new(),
        &[2, 2, 6, 10],
        |i| {
            let c = i[1] * 4 + (i[2] % 2) * 2 + i[3] % 2;
            Some(vec![i[0], c, i[2] / 2, i[3] / 2])
        },
    ));
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(4);
    let mut cases = Vec::new();
    transposes(&mut random, &mut cases);
    slices(&mut random, &mut cases);
    gathers(&mut random, &mut cases);
    cases
}
