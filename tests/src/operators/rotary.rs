//! Rotary embedding: both layouts, both kinds of angles, parts of rows, and angles that broadcast.

use std::sync::Arc;

use kilim::core::ops::{Angles, RotaryEmbedding};

use super::{Array, Case, Random, each_index, flat};

/// The shapes of data, cosines and sines, and how many numbers of a row turn.
type Form = (&'static [usize], &'static [usize], &'static [usize], usize);

/// Angles are one for each number here; those of pairs are half as many.
const FORMS: [Form; 9] = [
    (&[2, 3, 5, 8], &[5, 8], &[5, 8], 8),
    (&[2, 3, 5, 8], &[2, 1, 5, 8], &[1, 1, 5, 8], 8),
    (&[2, 5, 3, 10], &[2, 5, 1, 6], &[2, 5, 1, 6], 6),
    (&[1, 1, 9, 64], &[64], &[1, 64], 64),
    (&[3, 70], &[3, 66], &[3, 66], 66),
    (&[4], &[4], &[4], 4),
    (&[2, 0, 3, 4], &[3, 4], &[3, 4], 4),
    (&[2, 3, 7], &[3, 0], &[3, 0], 0),
    (&[1, 2, 1, 1, 3, 6], &[1, 2, 1, 1, 1, 2], &[3, 2], 2),
];

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(41);
    let mut cases = Vec::new();
    for (shape, cosines, sines, turned) in FORMS {
        for interleaved in [false, true] {
            for angles in [Angles::OfPairs, Angles::OfNumbers] {
                let op = RotaryEmbedding {
                    interleaved,
                    angles,
                    partial: shape.last() != Some(&turned),
                };
                let of_row = |shape: &[usize]| {
                    let mut shape = shape.to_vec();
                    if let (Angles::OfPairs, Some(last)) = (angles, shape.last_mut()) {
                        *last /= 2;
                    }
                    shape
                };
                let x = random.array(shape);
                let (c, s) = (random.array(&of_row(cosines)), random.array(&of_row(sines)));
                cases.push(Case {
                    name: format!("RotaryEmbedding {shape:?} {cosines:?} {sines:?} {op:?}"),
                    want: (shape.to_vec(), want(&op, turned, &x, &c, &s)),
                    op: Arc::new(op),
                    inputs: vec![x.fed(), c.fed(), s.fed()],
                    tolerance: 1e-6,
                });
            }
        }
    }
    cases
}

/// The number of `angles` at `last` in the row of the data at `row`.
fn angle(angles: &Array, row: &[usize], last: usize) -> f64 {
    let dims = angles.shape.len();
    let mut at: Vec<usize> = row[row.len() + 1 - dims..].to_vec();
    at.push(last);
    let own = at.iter().zip(&angles.shape).map(|(&i, &n)| i.min(n - 1));
    f64::from(angles.data[flat(&angles.shape, &own.collect::<Vec<_>>())])
}

fn want(op: &RotaryEmbedding, turned: usize, x: &Array, c: &Array, s: &Array) -> Vec<f64> {
    let mut want = Vec::new();
    each_index(&x.shape, |at| {
        let [row @ .., d] = at else { return };
        let number = |d: usize| f64::from(x.data[flat(&x.shape, &[row, &[d]].concat())]);
        if *d >= turned {
            want.push(number(*d));
            return;
        }
        let (second, other, pair) = match op.interleaved {
            true => (d % 2 == 1, d ^ 1, d / 2),
            false if *d < turned / 2 => (false, d + turned / 2, *d),
            false => (true, d - turned / 2, d - turned / 2),
        };
        let own = match op.angles {
            Angles::OfPairs => pair,
            Angles::OfNumbers => *d,
        };
        let across = number(other) * angle(s, row, own);
        let sign = if second { 1.0 } else { -1.0 };
        want.push(number(*d) * angle(c, row, own) + sign * across);
    });
    want
}
