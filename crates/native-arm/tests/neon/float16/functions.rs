//! Functions of one and two tensors.

use kilim_core::ops::{Binary, BinaryKind, Unary, UnaryKind};

use super::{To, check, refused};
use crate::common::Given::{Constant, Fed};
use crate::common::{floats, noise};

/// Roundings that a function may be off by: the ONNX suite wants halves within 1e-3 of the result.
const FUNCTION: f64 = 2.0;

#[test]
fn functions() {
    for n in [37, 40] {
        let signed = floats(&[3, n], |i| i as f32 / 9.0 - 6.0);
        let positive = floats(&[3, n], |i| (i + 1) as f32 / 7.0);
        let check = |kind, roundings| {
            let x = if kind == UnaryKind::Sqrt {
                &positive
            } else {
                &signed
            };
            check(
                &format!("{kind:?} n={n}"),
                Unary(kind),
                &[Fed(x.clone())],
                &[3, n],
                roundings,
                To::Result,
            );
        };
        for kind in [UnaryKind::Abs, UnaryKind::Neg, UnaryKind::Round] {
            check(kind, 0.0);
        }
        if n == 40 {
            // Over rows that are not whole vectors these are refused in every type.
            check(UnaryKind::Relu, 0.0);
            check(
                UnaryKind::Clip {
                    min: -0.5,
                    max: 0.5,
                },
                0.0,
            );
        }
        for kind in [
            UnaryKind::LeakyRelu { alpha: 0.125 },
            UnaryKind::Sigmoid,
            UnaryKind::Tanh,
            UnaryKind::Sqrt,
            UnaryKind::Exp,
        ] {
            check(kind, FUNCTION);
        }
        // x + 3, 1/6 and both products are rounded.
        check(UnaryKind::HardSwish, 4.0);
        // A sigmoid and a product.
        check(UnaryKind::Swish { alpha: 1.0 }, FUNCTION + 1.0);
    }
}

#[test]
fn what_loses_digits_near_zero_is_refused() {
    for kind in [
        UnaryKind::Elu { alpha: 1.0 },
        UnaryKind::Gelu { tanh: false },
        UnaryKind::Swish { alpha: 2.0 },
    ] {
        let x = [Fed(noise(&[3, 8], 1))];
        refused(Unary(kind), &x, &[3, 8], "loses digits");
    }
}

#[test]
fn functions_of_two() {
    use BinaryKind::*;
    for kind in [Add, Sub, Mul, Div, Max, Min, PRelu] {
        for n in [37, 40] {
            let vectors = matches!(kind, Max | Min);
            if vectors && n == 37 {
                continue;
            }
            let roundings = if vectors { 0.0 } else { 1.0 };
            let x = || Fed(noise(&[3, n], 1));
            let all = [(vec![3, n], false), (vec![n], false), (vec![3, 1], false)];
            let slopes = [(vec![n], true)];
            for (other, constant) in if kind == PRelu { &slopes[..] } else { &all[..] } {
                let second = noise(other, 2);
                let second = if *constant {
                    Constant(second)
                } else {
                    Fed(second)
                };
                let what = format!("{kind:?} by {other:?}");
                check(
                    &what,
                    Binary::new(kind),
                    &[x(), second],
                    &[3, n],
                    roundings,
                    To::Result,
                );
            }
        }
    }
}
