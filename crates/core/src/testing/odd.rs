//! Attributes and inputs that a hostile model may have, and that fit each other often enough.

use super::generate::{Random, Taste};
use crate::datum::Form;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::fact::{Fact, InputFact};
use crate::tensor::Tensor;

/// Sizes whose bytes do not fit into an address, alone or multiplied with each other, on 64 bits or on 32.
const LARGE: [usize; 7] = [
    0,
    1 << 14,
    (1 << 15) + 1,
    1 << (usize::BITS / 8 * 5),
    1 << (usize::BITS - 2),
    usize::MAX / 2 + 1,
    usize::MAX,
];

/// Sizes that fit each other often.
pub const SMALL: [usize; 7] = [1, 1, 2, 3, 4, 6, 8];

/// A dimension: one of `small`, of no known size, or so large that products of it do not fit.
pub fn dim(small: &[usize], random: &mut Random) -> Dim {
    match random.next(12) {
        0 => Dim::Unknown,
        1 => Dim::Symbol("n".into()).plus(&random.next(2).into()),
        2 => Dim::Known(random.of(&LARGE)),
        _ => Dim::Known(random.of(small)),
    }
}

fn integer(random: &mut Random) -> i64 {
    let odd = [i64::MIN, i64::MAX, 1 << 40, -(1 << 40), i64::MIN + 1];
    match random.next(6) {
        0 => random.of(&odd),
        _ => random.next(9) as i64 - 3,
    }
}

fn tensor(random: &mut Random) -> Tensor {
    let shape: &[usize] = random.of(&[&[], &[1], &[2], &[3], &[4], &[2, 2], &[0], &[1, 2, 4]]);
    let count = shape.iter().product();
    let ints: Vec<i64> = (0..count).map(|_| integer(random)).collect();
    match random.next(5) {
        4 if random.next(3) == 0 => {
            let texts: Vec<std::sync::Arc<str>> =
                ints.iter().map(|v| format!("a {v} ").into()).collect();
            Tensor::from_texts(shape, texts).unwrap()
        }
        0 => {
            let odd = [f32::NAN, f32::INFINITY, -1e38, 1e38, 0.0];
            let floats: Vec<f32> = ints
                .iter()
                .map(|&v| match random.next(4) {
                    0 => random.of(&odd),
                    _ => v as f32 / 2.0,
                })
                .collect();
            Tensor::from_slice(shape, &floats).unwrap()
        }
        1 => {
            let bools: Vec<bool> = ints.iter().map(|v| v % 2 == 0).collect();
            Tensor::from_bools(shape, &bools).unwrap()
        }
        _ => Tensor::from_slice(shape, &ints).unwrap(),
    }
}

/// An input with dimensions as [`dim`] gives them, or none.
pub fn input(small: &[usize], random: &mut Random) -> Option<InputFact> {
    let rank = random.of(&[0, 1, 2, 3, 3, 4, 4, 5]);
    match random.next(11) {
        0 => None,
        10 => Some(InputFact {
            fact: Fact {
                dtype: Some(DType::F32),
                shape: None,
                kind: random
                    .of(&[Form::Sequence, Form::Map, Form::MapSequence])
                    .into(),
            },
            value: None,
        }),
        1..=4 => {
            let value = tensor(random);
            Some(InputFact {
                fact: Fact::of(&value),
                value: Some(value),
            })
        }
        5 => Some(InputFact::default()),
        _ => Some(InputFact {
            fact: Fact {
                dtype: Some(random.of(&[
                    DType::F32,
                    DType::F32,
                    DType::I64,
                    DType::U8,
                    DType::Bool,
                    DType::I4,
                    DType::String,
                ])),
                shape: Some(Shape((0..rank).map(|_| dim(small, random)).collect())),
                ..Fact::default()
            },
            value: None,
        }),
    }
}

/// Attributes that are odd, and often enough fit each other.
pub struct Odd(pub Random);

impl Taste for Odd {
    fn random(&mut self) -> &mut Random {
        &mut self.0
    }

    fn int(&mut self, min: i128, max: i128) -> i128 {
        let odd = [min, min + 1, max, 1 << 40, -(1 << 40), 1 << 62];
        let plain = self.0.next(9) as i128 - 3;
        let number = match self.0.next(6) {
            0 => self.0.of(&odd),
            _ => plain,
        };
        number.clamp(min, max)
    }

    fn float32(&mut self) -> f32 {
        self.0
            .of(&[0.0, 1.0, 1.0, 1e-5, -1.0, f32::NAN, f32::INFINITY])
    }

    fn float64(&mut self) -> f64 {
        self.float32().into()
    }

    fn text(&mut self) -> String {
        let texts = ["", " ", "a", "a 1 ", "é", "->", "....", "ii", "ij,jk->ik"];
        let equations = ["...i->...", "a...b->b...a", "i...,...i", "[a", "a*"];
        self.0.of(&[&texts[..], &equations].concat()).to_string()
    }

    fn tensor(&mut self) -> Tensor {
        tensor(&mut self.0)
    }

    fn length(&mut self) -> usize {
        self.0.of(&[0, 1, 1, 2, 2, 3, 4, 6])
    }
}
