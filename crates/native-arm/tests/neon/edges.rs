//! NaN, infinities and numbers at the edges: as `cpu` has them, or refused.

use kilim_core::Tensor;
use kilim_core::ops::{
    Activation, AveragePool, Binary, BinaryKind, Conv, ConvTranspose, MatMul, Padding, Softmax,
    SoftmaxKind, Unary, UnaryKind,
};

use crate::agreement::{agrees, check};
use crate::common::Given::{Constant, Fed};
use crate::common::{conv, conv_transpose, extremes, floats, noise, window};

/// Every third number is none.
fn holes(shape: &[usize]) -> Tensor {
    let noise = noise(shape, 5).as_slice::<f32>().unwrap().to_vec();
    floats(shape, |i| if i % 3 == 1 { f32::NAN } else { noise[i] })
}

/// Functions of one tensor, among them those that ACL computes otherwise and that are refused.
fn functions() -> Vec<UnaryKind> {
    vec![
        UnaryKind::Relu,
        UnaryKind::Clip {
            min: -0.5,
            max: 0.5,
        },
        UnaryKind::Elu { alpha: 1.0 },
        UnaryKind::HardSwish,
        UnaryKind::LeakyRelu { alpha: 0.1 },
        UnaryKind::Sigmoid,
        UnaryKind::Tanh,
        UnaryKind::Softplus,
        UnaryKind::Sqrt,
        UnaryKind::Gelu { tanh: false },
        UnaryKind::Swish { alpha: 1.0 },
        UnaryKind::Swish { alpha: 2.0 },
        UnaryKind::Exp,
        UnaryKind::Log,
        UnaryKind::Abs,
        UnaryKind::Round,
        UnaryKind::Floor,
    ]
}

#[test]
fn nan_comes_out_where_it_does_elsewhere() {
    let clip = Activation::Clip {
        min: -0.5,
        max: 0.5,
    };
    let mut results = Vec::new();
    for activation in [
        Activation::Relu,
        clip,
        Activation::HardSigmoid {
            alpha: 0.2,
            beta: 0.5,
        },
    ] {
        for (channels_last, x, y) in [
            (true, [1, 3, 3, 5], [1, 3, 3, 7]),
            (false, [1, 5, 3, 3], [1, 7, 3, 3]),
        ] {
            let what = |name: &str| format!("{name} {activation:?} channels_last={channels_last}");
            let pointwise = Conv {
                padding: Padding::Explicit(vec![0; 4]),
                activation,
                ..conv(1, channels_last)
            };
            let inputs = [Fed(holes(&x)), Constant(noise(&[7, 5, 1, 1], 2))];
            results.push(agrees(&what("Conv 1x1"), pointwise, &inputs, &y));
            // One number that is none, so that few results are.
            let mut one = noise(&x, 1);
            one.make_mut::<f32>().unwrap()[0] = f32::NAN;
            let spatial = Conv {
                activation,
                ..conv(1, channels_last)
            };
            let inputs = [Fed(one.clone()), Constant(noise(&[7, 5, 3, 3], 2))];
            results.push(agrees(&what("Conv 3x3"), spatial, &inputs, &y));
            let depthwise = Conv {
                activation,
                ..conv(5, channels_last)
            };
            let inputs = [Fed(one.clone()), Constant(noise(&[5, 1, 3, 3], 2))];
            results.push(agrees(&what("depthwise"), depthwise, &inputs, &x));
            let transposed = ConvTranspose {
                activation,
                ..conv_transpose(1, channels_last)
            };
            let inputs = [Fed(one.clone()), Constant(noise(&[5, 7, 3, 3], 2))];
            results.push(agrees(&what("ConvTranspose"), transposed, &inputs, &y));
            let pooled = if channels_last {
                [1, 2, 2, 5]
            } else {
                [1, 5, 2, 2]
            };
            let average = AveragePool {
                window: window(2, 1, 0),
                count_include_pad: false,
                channels_last,
                activation,
            };
            results.push(agrees(&what("AveragePool"), average, &[Fed(one)], &pooled));
        }
        for n in [5, 7, 8] {
            let what = |name: &str| format!("{name} {activation:?} n={n}");
            let product = MatMul {
                activation,
                ..MatMul::default()
            };
            let inputs = [Fed(holes(&[3, 6])), Constant(noise(&[6, n], 2))];
            results.push(agrees(
                &what("FullyConnected"),
                product.clone(),
                &inputs,
                &[3, n],
            ));
            let inputs = [Fed(holes(&[3, 6])), Fed(noise(&[6, n], 2))];
            results.push(agrees(&what("GEMM"), product, &inputs, &[3, n]));
            let sum = Binary {
                activation,
                ..Binary::new(BinaryKind::Add)
            };
            let inputs = [Fed(holes(&[3, n])), Fed(noise(&[3, n], 2))];
            results.push(agrees(&what("Add"), sum, &inputs, &[3, n]));
        }
    }
    for n in [5, 8] {
        use BinaryKind::*;
        for kind in [Add, Sub, Mul, Div, Max, Min, PRelu] {
            let what = format!("{kind:?} n={n}");
            let inputs = [Fed(holes(&[3, n])), Fed(noise(&[3, n], 2))];
            results.push(agrees(&what, Binary::new(kind), &inputs, &[3, n]));
            let inputs = [Fed(noise(&[3, n], 2)), Fed(holes(&[3, n]))];
            results.push(agrees(
                &format!("{what} second"),
                Binary::new(kind),
                &inputs,
                &[3, n],
            ));
        }
        for kind in [SoftmaxKind::Softmax, SoftmaxKind::LogSoftmax] {
            for axis in [0, 1] {
                let op = Softmax {
                    kind,
                    axis,
                    beta: 1.0,
                };
                let what = format!("{kind:?} of masked axis={axis} n={n}");
                let masked = floats(&[3, n], |i| match i % 4 {
                    1 => f32::NEG_INFINITY,
                    k => k as f32,
                });
                results.push(agrees(&what, op, &[Fed(masked)], &[3, n]));
                let what = format!("{kind:?} axis={axis} n={n}");
                let op = Softmax {
                    kind,
                    axis,
                    beta: 1.0,
                };
                let mut one = noise(&[3, n], 1);
                one.make_mut::<f32>().unwrap()[n - 1] = f32::NAN;
                results.push(agrees(&what, op, &[Fed(one)], &[3, n]));
            }
        }
        for kind in functions() {
            let what = format!("{kind:?} n={n}");
            results.push(agrees(&what, Unary(kind), &[Fed(holes(&[3, n]))], &[3, n]));
        }
    }
    check(results);
}

#[test]
fn functions_agree_at_the_edges_of_what_there_is() {
    let mut results = Vec::new();
    for n in [5, 8] {
        for kind in functions() {
            let what = format!("{kind:?} of extremes n={n}");
            results.push(agrees(
                &what,
                Unary(kind),
                &[Fed(extremes(&[4, n]))],
                &[4, n],
            ));
        }
    }
    check(results);
}
