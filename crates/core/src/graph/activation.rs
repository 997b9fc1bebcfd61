//! Activations that operators apply to their result before it is stored.

use crate::Reflect;

/// A pointwise function fused into the operator before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Reflect)]
pub enum Activation {
    #[default]
    #[attribute(absent)]
    None,
    Relu,
    /// `min(max(x, min), max)`; Relu6 is `Clip { min: 0.0, max: 6.0 }`.
    Clip {
        min: f32,
        max: f32,
    },
    LeakyRelu {
        alpha: f32,
    },
    Sigmoid,
    Tanh,
    HardSwish,
    /// `max(0, min(1, alpha * x + beta))`.
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    /// `x * sigmoid(x)`.
    Silu,
}

impl Activation {
    /// The interval that numbers are clamped to; `None` where the activation does anything else.
    pub fn bounds(self) -> Option<[f32; 2]> {
        match self {
            Activation::None => Some([f32::NEG_INFINITY, f32::INFINITY]),
            Activation::Relu => Some([0.0, f32::INFINITY]),
            Activation::Clip { min, max } => Some([min, max]),
            _ => None,
        }
    }
}
