//! Rotary embedding: both layouts, both kinds of angles, parts of rows, and angles that broadcast; packed queries, keys and values with
//! their caches.

use std::sync::Arc;

use kilim::Tensor;
use kilim::core::ops::{Angles, RotaryEmbedding, UnpackQkv};

use super::{Array, Case, Input, Random, each_index, flat, ints};

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
                    want: vec![(shape.to_vec(), want(&op, turned, &x, &c, &s))],
                    op: Arc::new(op),
                    inputs: vec![x.fed(), c.fed(), s.fed()],
                    tolerance: 1e-6,
                });
            }
        }
    }
    cases.extend(PACKED.iter().flat_map(|form| form.cases(&mut random)));
    cases
}

/// Packed queries, keys and values, and caches.
struct Packed {
    batch: usize,
    /// Batches of cosines and of sines.
    of_angles: [usize; 2],
    steps: usize,
    query_heads: usize,
    key_heads: usize,
    size: usize,
    pairs: usize,
    /// Places of the caches that are given.
    held: usize,
    /// Places of the caches that come out, where there are to be more.
    longer: Option<usize>,
    starts: &'static [i64],
}

const PACKED: [Packed; 5] = [
    Packed {
        batch: 1,
        of_angles: [1, 1],
        steps: 1,
        query_heads: 3,
        key_heads: 1,
        size: 64,
        pairs: 32,
        held: 9,
        longer: None,
        starts: &[4],
    },
    Packed {
        batch: 2,
        of_angles: [2, 1],
        steps: 3,
        query_heads: 4,
        key_heads: 2,
        size: 7,
        pairs: 2,
        held: 5,
        longer: None,
        starts: &[2, 0],
    },
    Packed {
        batch: 2,
        of_angles: [1, 2],
        steps: 4,
        query_heads: 2,
        key_heads: 2,
        size: 5,
        pairs: 0,
        held: 4,
        longer: Some(9),
        starts: &[0, 5],
    },
    Packed {
        batch: 3,
        of_angles: [3, 3],
        steps: 0,
        query_heads: 1,
        key_heads: 1,
        size: 4,
        pairs: 2,
        held: 2,
        longer: None,
        starts: &[0, 1, 2],
    },
    Packed {
        batch: 1,
        of_angles: [1, 1],
        steps: 2,
        query_heads: 5,
        key_heads: 1,
        size: 70,
        pairs: 33,
        held: 0,
        longer: Some(3),
        starts: &[1],
    },
];

impl Packed {
    fn cases(&self, random: &mut Random) -> Vec<Case> {
        let Packed {
            batch,
            steps,
            query_heads,
            key_heads,
            size,
            pairs,
            held,
            ..
        } = *self;
        let heads = query_heads + 2 * key_heads;
        let packed = random.array(&[batch, steps, heads * size]);
        let angles = self.of_angles.map(|own| random.array(&[own, steps, pairs]));
        let caches = [0, 1].map(|_| random.array(&[batch, key_heads, held, size]));
        let starts = Tensor::from_slice(&[batch], self.starts);
        let mut inputs: Vec<_> = [&packed, &angles[0], &angles[1], &caches[0], &caches[1]]
            .map(Array::fed)
            .into();
        inputs.push(Input::Fed(starts.expect("a start for each batch")));
        inputs.extend(self.longer.map(|places| ints(&[places as i64])));
        let case = |interleaved| {
            let op = UnpackQkv {
                query_heads,
                key_heads,
                interleaved,
            };
            let head = |at: [usize; 3]| self.head(&op.rotary(), &packed, &angles, at);
            let queries = self.of_heads(query_heads, |batch, of, step| head([batch, step, of]));
            let keys = self.cache(&caches[0], |batch, of, step| {
                head([batch, step, query_heads + of])
            });
            let values = self.cache(&caches[1], |batch, of, step| {
                let first = (query_heads + key_heads + of) * size;
                let number = |d| flat(&packed.shape, &[batch, step, first + d]);
                let number = |d| f64::from(packed.data[number(d)]);
                (0..size).map(number).collect()
            });
            Case {
                name: format!("UnpackQkv {batch}x{steps} {heads} heads of {size}, {interleaved}"),
                op: Arc::new(op),
                inputs: inputs.clone(),
                want: vec![queries, keys, values],
                tolerance: 1e-6,
            }
        };
        [false, true].map(case).into()
    }

    /// A head that turns.
    fn head(
        &self,
        op: &RotaryEmbedding,
        packed: &Array,
        angles: &[Array; 2],
        [batch, step, head]: [usize; 3],
    ) -> Vec<f64> {
        let x = flat(&packed.shape, &[batch, step, head * self.size]);
        let x = Array {
            shape: vec![self.size],
            data: packed.data[x..][..self.size].to_vec(),
        };
        let [c, s] = [0, 1].map(|i| {
            let all = &angles[i];
            let row = (batch.min(all.shape[0] - 1) * self.steps + step) * self.pairs;
            Array {
                shape: vec![self.pairs],
                data: all.data[row..][..self.pairs].to_vec(),
            }
        });
        want(op, 2 * self.pairs, &x, &c, &s)
    }

    /// `[batch, heads, steps, size]` by the numbers of a batch, a head and a step.
    fn of_heads(
        &self,
        heads: usize,
        numbers: impl Fn(usize, usize, usize) -> Vec<f64>,
    ) -> (Vec<usize>, Vec<f64>) {
        let mut data = Vec::new();
        each_index(&[self.batch, heads, self.steps], |at| {
            data.extend(numbers(at[0], at[1], at[2]));
        });
        (vec![self.batch, heads, self.steps, self.size], data)
    }

    /// A cache with the heads of all steps written on it.
    fn cache(
        &self,
        given: &Array,
        numbers: impl Fn(usize, usize, usize) -> Vec<f64>,
    ) -> (Vec<usize>, Vec<f64>) {
        let places = self.longer.unwrap_or(self.held);
        let mut data = Vec::new();
        each_index(&[self.batch, self.key_heads, places], |at| {
            let [batch, head, place] = *at else { return };
            let step = place.checked_sub(self.starts[batch] as usize);
            match step.filter(|step| *step < self.steps) {
                Some(step) => data.extend(numbers(batch, head, step)),
                None if place < self.held => {
                    let from = flat(&given.shape, &[batch, head, place, 0]);
                    let kept = &given.data[from..][..self.size];
                    data.extend(kept.iter().map(|&x| f64::from(x)));
                }
                None => data.resize(data.len() + self.size, 0.0),
            }
        });
        let shape = vec![self.batch, self.key_heads, places, self.size];
        (shape, data)
    }
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
