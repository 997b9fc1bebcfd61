//! Recurrent layers. Inputs as in ONNX: x, w, r, optional b, sequence lengths, initial h (and for
//! LSTM initial c and peepholes p).

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Forward,
    Reverse,
    Bidirectional,
}

impl Direction {
    pub const fn count(self) -> usize {
        match self {
            Direction::Bidirectional => 2,
            _ => 1,
        }
    }
}

/// An activation inside a recurrent cell, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellActivation {
    Sigmoid,
    Tanh,
    Relu,
    Affine { alpha: f32, beta: f32 },
    LeakyRelu { alpha: f32 },
    ThresholdedRelu { alpha: f32 },
    ScaledTanh { alpha: f32, beta: f32 },
    HardSigmoid { alpha: f32, beta: f32 },
    Elu { alpha: f32 },
    Softsign,
    Softplus,
}

/// What all recurrent layers have.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurrent {
    pub hidden: usize,
    pub direction: Direction,
    /// Per direction: one for RNN, two for GRU, three for LSTM.
    pub activations: Vec<CellActivation>,
    pub clip: Option<f32>,
    /// Batch before time (`layout = 1`).
    pub batch_first: bool,
}

/// Outputs: y, h, c.
#[derive(Clone, Debug, PartialEq)]
pub struct Lstm {
    pub cell: Recurrent,
    pub input_forget: bool,
    /// Bounds the cell state of every step to plus and minus this (TFLite's `cell_clip`).
    pub cell_clip: Option<f32>,
}

/// Outputs: y, h.
#[derive(Clone, Debug, PartialEq)]
pub struct Gru {
    pub cell: Recurrent,
    pub linear_before_reset: bool,
}

/// Outputs: y, h.
#[derive(Clone, Debug, PartialEq)]
pub struct Rnn {
    pub cell: Recurrent,
}

impl Operator for Lstm {
    fn name(&self) -> &'static str {
        "LSTM"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Gru {
    fn name(&self) -> &'static str {
        "GRU"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Rnn {
    fn name(&self) -> &'static str {
        "RNN"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
