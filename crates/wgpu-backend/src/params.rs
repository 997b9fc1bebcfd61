//! The parameters of one dispatch, as words of its uniform buffer. Shaders declare them in a struct
//! `Params`: whatever is made of vectors first, scalars after.

use kilim_core::ops::Activation;

/// Dimensions that a shader's index arithmetic handles.
pub(crate) const MAX_RANK: usize = 8;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Params {
    pub words: Vec<u32>,
    /// A number did not fit in 32 bits.
    pub overflow: bool,
}

impl Params {
    /// No words.
    pub fn new() -> Params {
        Params::default()
    }

    /// Adds a `u32`.
    pub fn u(mut self, value: usize) -> Params {
        self.overflow |= u32::try_from(value).is_err();
        self.words.push(value as u32);
        self
    }

    /// Adds an `i32`.
    pub fn i(mut self, value: i64) -> Params {
        self.overflow |= i32::try_from(value).is_err();
        self.words.push(value as i32 as u32);
        self
    }

    /// Adds an `f32`.
    pub fn f(mut self, value: f32) -> Params {
        self.words.push(value.to_bits());
        self
    }

    /// `array<vec4<u32>, 2>`: up to eight numbers, zeros behind them.
    pub fn dims(mut self, values: &[usize]) -> Params {
        self.overflow |= values.len() > MAX_RANK;
        for i in 0..MAX_RANK {
            self = self.u(values.get(i).copied().unwrap_or(0));
        }
        self
    }

    /// `array<vec4<i32>, 2>`.
    pub fn signed(mut self, values: &[i64]) -> Params {
        self.overflow |= values.len() > MAX_RANK;
        for i in 0..MAX_RANK {
            self = self.i(values.get(i).copied().unwrap_or(0));
        }
        self
    }

    /// Adds a word as it is.
    pub fn word(mut self, word: u32) -> Params {
        self.words.push(word);
        self
    }

    /// `act: u32, act_a: f32, act_b: f32`.
    pub fn activation(self, activation: &Activation) -> Params {
        let words = activation_words(activation);
        words.into_iter().fold(self, Params::word)
    }
}

/// Kind and numbers of an activation, as `shared/activation.wgsl` reads them.
pub(crate) fn activation_words(activation: &Activation) -> [u32; 3] {
    let (kind, a, b): (u32, f32, f32) = match *activation {
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
    [kind, a.to_bits(), b.to_bits()]
}
