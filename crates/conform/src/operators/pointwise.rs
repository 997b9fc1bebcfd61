//! Unary and binary operators.

use std::sync::Arc;

use kilim::Tensor;
use kilim::core::ops::{Binary, BinaryKind, Unary, UnaryKind};

use super::{Array, Case, Input, Random, each_index, flat};

type Function = fn(f64) -> f64;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Abramowitz and Stegun 7.1.5 by its series, exact enough for |x| < 6.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / n as f64;
        sum += term / (2 * n + 1) as f64;
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn unary() -> Vec<(UnaryKind, Function, f32, f32)> {
    use UnaryKind::*;
    vec![
        (Abs, f64::abs, -9.0, 9.0),
        (Neg, |x| -x, -9.0, 9.0),
        (Exp, f64::exp, -20.0, 5.0),
        (Log, f64::ln, 0.001, 50.0),
        (Sqrt, f64::sqrt, 0.0, 50.0),
        (Reciprocal, |x| 1.0 / x, 0.1, 9.0),
        (Floor, f64::floor, -9.0, 9.0),
        (Ceil, f64::ceil, -9.0, 9.0),
        (Round, f64::round_ties_even, -9.0, 9.0),
        (Sin, f64::sin, -6.0, 6.0),
        (Cos, f64::cos, -6.0, 6.0),
        (Tan, f64::tan, -1.2, 1.2),
        (Tanh, f64::tanh, -12.0, 12.0),
        (Atan, f64::atan, -9.0, 9.0),
        (Erf, erf, -4.0, 4.0),
        (Sigmoid, sigmoid, -30.0, 30.0),
        (Relu, |x| x.max(0.0), -9.0, 9.0),
        (Softplus, |x| x.exp().ln_1p(), -20.0, 20.0),
        (Softsign, |x| x / (1.0 + x.abs()), -9.0, 9.0),
        (
            LeakyRelu { alpha: 0.1 },
            |x| if x < 0.0 { 0.1 * x } else { x },
            -9.0,
            9.0,
        ),
        (
            Elu { alpha: 2.0 },
            |x| if x < 0.0 { 2.0 * x.exp_m1() } else { x },
            -9.0,
            9.0,
        ),
        (
            HardSwish,
            |x| x * ((x / 6.0 + 0.5).clamp(0.0, 1.0)),
            -9.0,
            9.0,
        ),
        (
            HardSigmoid {
                alpha: 0.25,
                beta: 0.4,
            },
            |x| (0.25 * x + 0.4).clamp(0.0, 1.0),
            -9.0,
            9.0,
        ),
        (Mish, |x| x * x.exp().ln_1p().tanh(), -9.0, 9.0),
        (
            Gelu { tanh: false },
            |x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt())),
            -5.0,
            5.0,
        ),
        (Swish { alpha: 1.0 }, |x| x * sigmoid(x), -9.0, 9.0),
        (
            Clip {
                min: -1.5,
                max: 2.5,
            },
            |x| x.clamp(-1.5, 2.5),
            -9.0,
            9.0,
        ),
    ]
}

type Pair = fn(f64, f64) -> f64;

/// numpy broadcasting, by index.
pub(super) fn broadcast(a: &Array, b: &Array, f: Pair) -> (Vec<usize>, Vec<f64>) {
    let rank = a.shape.len().max(b.shape.len());
    let dim = |s: &Array, i: usize| {
        let missing = rank - s.shape.len();
        if i < missing { 1 } else { s.shape[i - missing] }
    };
    let shape: Vec<usize> = (0..rank)
        .map(|i| match (dim(a, i), dim(b, i)) {
            (1, n) => n,
            (n, _) => n,
        })
        .collect();
    let at = |s: &Array, index: &[usize]| {
        let own: Vec<usize> = (rank - s.shape.len()..rank)
            .map(|i| if dim(s, i) == 1 { 0 } else { index[i] })
            .collect();
        f64::from(s.data[flat(&s.shape, &own)])
    };
    let mut out = Vec::new();
    each_index(&shape, |i| out.push(f(at(a, i), at(b, i))));
    (shape, out)
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(1);
    let mut cases = Vec::new();
    for (kind, f, low, high) in unary() {
        for shape in [&[][..], &[7], &[0, 3], &[2, 3, 17]] {
            let mut x = random.array(shape);
            for v in &mut x.data {
                *v = low + (high - low) * (*v + 1.0) / 2.0;
            }
            cases.push(Case {
                name: format!("{} {shape:?}", kind.name()),
                op: Arc::new(Unary(kind)),
                inputs: vec![x.fed()],
                want: vec![(
                    shape.to_vec(),
                    x.data.iter().map(|&v| f(f64::from(v))).collect(),
                )],
                tolerance: 2e-6,
            });
        }
    }
    let pairs: [(BinaryKind, Pair); 7] = [
        (BinaryKind::Add, |a, b| a + b),
        (BinaryKind::Sub, |a, b| a - b),
        (BinaryKind::Mul, |a, b| a * b),
        (BinaryKind::Div, |a, b| a / b),
        (BinaryKind::Max, f64::max),
        (BinaryKind::Min, f64::min),
        (BinaryKind::PRelu, |a, b| if a < 0.0 { a * b } else { a }),
    ];
    let shapes: [(&[usize], &[usize]); 9] = [
        (&[5], &[5]),
        (&[], &[3]),
        (&[2, 3, 4], &[4]),
        (&[2, 3, 4], &[3, 1]),
        (&[2, 1, 5], &[3, 1]),
        (&[1, 7, 9, 13], &[1, 1, 1, 13]),
        (&[2, 5, 1, 3], &[2, 1, 4, 3]),
        (&[0, 4], &[4]),
        (&[1, 2, 1, 3, 1, 2], &[2, 1, 2, 1, 3, 1]),
    ];
    for (kind, f) in pairs {
        for (left, right) in shapes {
            // PRelu broadcasts its slope to the data, not the other way round.
            if kind == BinaryKind::PRelu && left.len() < right.len() {
                continue;
            }
            let (a, mut b) = (random.array(left), random.array(right));
            for v in &mut b.data {
                *v += 1.5f32.copysign(*v);
            }
            let want = broadcast(&a, &b, f);
            if kind == BinaryKind::PRelu && want.0 != left {
                continue;
            }
            cases.push(Case {
                name: format!("{} {left:?} {right:?}", kind.name()),
                op: Arc::new(Binary::new(kind)),
                inputs: vec![a.fed(), b.fed()],
                want: vec![want],
                tolerance: 1e-6,
            });
        }
    }
    cases.extend(with_itself());
    cases.extend(logarithms());
    cases.extend(not_numbers());
    cases.extend(whole_quotients());
    cases
}

/// NaN through functions that clamp.
fn not_numbers() -> Vec<Case> {
    let kinds = [
        UnaryKind::Sigmoid,
        UnaryKind::Tanh,
        UnaryKind::Relu,
        UnaryKind::Erf,
        UnaryKind::HardSwish,
        UnaryKind::Clip {
            min: -1.0,
            max: 1.0,
        },
    ];
    let case = |(kind, n): (UnaryKind, usize)| Case {
        name: format!("{} of {n} times NaN", kind.name()),
        op: Arc::new(Unary(kind)),
        inputs: vec![
            Array {
                shape: vec![n],
                data: vec![f32::NAN; n],
            }
            .fed(),
        ],
        want: vec![(vec![n], vec![f64::NAN; n])],
        tolerance: 0.0,
    };
    kinds
        .into_iter()
        .flat_map(|k| [(k, 3), (k, 8)])
        .map(case)
        .collect()
}

/// Logarithms at the ends of their domain and beyond.
fn logarithms() -> Vec<Case> {
    let values = [0.0, -0.0, f32::INFINITY, -1.0, f32::NAN, 1.0, 8.0];
    let case = |n: usize| {
        let data: Vec<f32> = values.iter().cycle().take(n).copied().collect();
        let want = data.iter().map(|&v| f64::from(v).ln()).collect();
        let x = Array {
            shape: vec![n],
            data,
        };
        Case {
            name: format!("Log of {n} at its ends"),
            op: Arc::new(Unary(UnaryKind::Log)),
            inputs: vec![x.fed()],
            want: vec![(vec![n], want)],
            tolerance: 1e-6,
        }
    };
    [7, 16].map(case).into()
}

/// A value with itself, where NaN and infinities must not be forgotten.
fn with_itself() -> Vec<Case> {
    let values = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        1.5,
        -2.0,
        8.0,
    ];
    let pairs: [(BinaryKind, Pair); 2] = [
        (BinaryKind::Sub, |a, b| a - b),
        (BinaryKind::Div, |a, b| a / b),
    ];
    let case = |(kind, f): &(BinaryKind, Pair), n: usize| {
        let data: Vec<f32> = values.iter().cycle().take(n).copied().collect();
        let want = data.iter().map(|&v| f(v.into(), v.into())).collect();
        let x = Array {
            shape: vec![n],
            data,
        };
        Case {
            name: format!("{} of {n} with themselves", kind.name()),
            op: Arc::new(Binary::new(*kind)),
            inputs: vec![x.fed(), Input::Again(0)],
            want: vec![(vec![n], want)],
            tolerance: 1e-6,
        }
    };
    pairs
        .iter()
        .flat_map(|pair| [case(pair, 7), case(pair, 16)])
        .collect()
}

/// Division by 0 gives 0, and the smallest number divided by -1 itself.
fn whole_quotients() -> Vec<Case> {
    use BinaryKind::{Div, Fmod, Mod};
    let (low, high) = (f64::from(i32::MIN), f64::from(i32::MAX));
    let a = [7, -7, 0, i32::MIN, i32::MIN, -7, i32::MAX];
    let b = [0, 0, 0, 0, -1, 3, -1];
    let wants: [(BinaryKind, [f64; 7]); 3] = [
        (Div, [0.0, 0.0, 0.0, 0.0, low, -2.0, -high]),
        (Mod, [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0]),
        (Fmod, [0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0]),
    ];
    let tensor = |list: &[i32]| Tensor::from_slice(&[list.len()], list).expect("a vector");
    wants
        .into_iter()
        .map(|(kind, want)| Case {
            name: format!("{} of whole numbers by 0 and -1", kind.name()),
            op: Arc::new(Binary::new(kind)),
            inputs: vec![Input::Fed(tensor(&a)), Input::Fed(tensor(&b))],
            want: vec![(vec![a.len()], want.to_vec())],
            tolerance: 0.0,
        })
        .collect()
}
