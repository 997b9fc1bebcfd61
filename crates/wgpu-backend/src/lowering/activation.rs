//! Activations as `shaders/shared/activation.wgsl` numbers them.

use kilim_core::ops::Activation;

use crate::shaders;

impl From<&Activation> for shaders::Activation {
    fn from(activation: &Activation) -> shaders::Activation {
        let (kind, a, b) = match *activation {
            Activation::None => (0, 0.0, 0.0),
            Activation::Relu => (1, 0.0, 0.0),
            Activation::Clip { min, max } => (2, min, max),
            Activation::LeakyRelu { alpha } => (3, alpha, 0.0),
            Activation::Sigmoid => (4, 0.0, 0.0),
            Activation::Tanh => (5, 0.0, 0.0),
            Activation::HardSwish => (6, 0.0, 0.0),
            Activation::HardSigmoid { alpha, beta } => (7, alpha, beta),
            Activation::Silu => (8, 0.0, 0.0),
        };
        shaders::Activation { kind, a, b }
    }
}
