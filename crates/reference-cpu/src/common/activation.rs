//! Activations fused into other operators.

use kilim_core::ops::Activation;

/// Applies `activation` in place.
pub fn apply(activation: Activation, data: &mut [f32]) {
    match activation {
        Activation::None => {}
        Activation::Relu => map(data, relu),
        Activation::Clip { min, max } => map(data, |x| clip(x, min, max)),
        Activation::LeakyRelu { alpha } => map(data, |x| if x < 0.0 { alpha * x } else { x }),
        Activation::Sigmoid => map(data, sigmoid),
        Activation::Tanh => map(data, f32::tanh),
        Activation::HardSwish => map(data, |x| x * hard_sigmoid(x, 1.0 / 6.0, 0.5)),
        Activation::HardSigmoid { alpha, beta } => map(data, |x| hard_sigmoid(x, alpha, beta)),
        Activation::Silu => map(data, |x| x * sigmoid(x)),
    }
}

fn map(data: &mut [f32], f: impl Fn(f32) -> f32) {
    for x in data {
        *x = f(*x);
    }
}

/// NaN stays NaN.
pub fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// NaN stays NaN; where the bounds cross, `max` wins.
pub fn clip(x: f32, min: f32, max: f32) -> f32 {
    let low = if x < min { min } else { x };
    if low > max { max } else { low }
}

/// The logistic function without overflow on either side.
pub fn sigmoid(x: f32) -> f32 {
    let e = (-x.abs()).exp();
    let s = 1.0 / (1.0 + e);
    if x < 0.0 { e * s } else { s }
}

/// `max(0, min(1, alpha * x + beta))`.
pub fn hard_sigmoid(x: f32, alpha: f32, beta: f32) -> f32 {
    clip(alpha * x + beta, 0.0, 1.0)
}
