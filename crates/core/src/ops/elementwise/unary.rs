//! Functions of one tensor.

use crate::Reflect;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, NodeView, Operator};
use crate::ops::rules::{ANY, BOOL, FLOATS, INTEGERS, NUMBERS, SIGNED, Types, fact};

/// The function of [`Unary`].
#[derive(Clone, Copy, Debug, PartialEq, Reflect)]
pub enum UnaryKind {
    Identity,
    Abs,
    Neg,
    Sign,
    Exp,
    Log,
    Sqrt,
    Reciprocal,
    Floor,
    Ceil,
    /// Rounds to the nearest integer, ties to even.
    Round,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Erf,
    Sigmoid,
    Relu,
    Softplus,
    Softsign,
    /// Logical.
    Not,
    BitwiseNot,
    IsNaN,
    IsInf {
        negative: bool,
        positive: bool,
    },
    LeakyRelu {
        alpha: f32,
    },
    Elu {
        alpha: f32,
    },
    Selu {
        alpha: f32,
        gamma: f32,
    },
    Celu {
        alpha: f32,
    },
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    HardSwish,
    Mish,
    Gelu {
        tanh: bool,
    },
    ThresholdedRelu {
        alpha: f32,
    },
    Shrink {
        bias: f32,
        lambda: f32,
    },
    /// `x * sigmoid(alpha * x)`.
    Swish {
        alpha: f32,
    },
    /// `min(max(x, min), max)` with constant bounds; see [`Clip`] for bounds that are inputs.
    Clip {
        min: f64,
        max: f64,
    },
}

/// One input, one output of the same shape. IsNaN, IsInf and Not give `bool`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Unary(pub UnaryKind);

impl Operator for Unary {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::MAPPED
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, self.0.types())?;
        let dtype = if self.0.is_test() {
            Some(DType::Bool)
        } else {
            dtype
        };
        Ok(vec![fact(dtype, ctx.shape(0)?.cloned())])
    }

    fn elements(&self, _: &InferContext, elements: &[Option<Vec<Dim>>]) -> Option<Vec<Dim>> {
        (self.0 == UnaryKind::Identity).then(|| elements.first()?.clone())?
    }

    fn is_view(&self) -> bool {
        self.0 == UnaryKind::Identity
    }

    fn on_values(&self) -> bool {
        self.0 == UnaryKind::Identity
    }

    fn passes_on(&self, _: &NodeView) -> bool {
        self.0 == UnaryKind::Identity
    }
}

impl UnaryKind {
    /// True where the output is `bool` whatever the input is.
    pub const fn is_test(self) -> bool {
        matches!(
            self,
            UnaryKind::Not | UnaryKind::IsNaN | UnaryKind::IsInf { .. }
        )
    }

    /// The element types of the input.
    fn types(self) -> &'static Types {
        match self {
            UnaryKind::Identity => &ANY,
            UnaryKind::Abs
            | UnaryKind::Sign
            | UnaryKind::Erf
            | UnaryKind::Shrink { .. }
            | UnaryKind::Clip { .. } => &NUMBERS,
            UnaryKind::Neg | UnaryKind::Relu => &SIGNED,
            UnaryKind::Not => &BOOL,
            UnaryKind::BitwiseNot => &INTEGERS,
            _ => &FLOATS,
        }
    }

    /// The name as ONNX spells it.
    pub const fn name(self) -> &'static str {
        match self {
            UnaryKind::Identity => "Identity",
            UnaryKind::Abs => "Abs",
            UnaryKind::Neg => "Neg",
            UnaryKind::Sign => "Sign",
            UnaryKind::Exp => "Exp",
            UnaryKind::Log => "Log",
            UnaryKind::Sqrt => "Sqrt",
            UnaryKind::Reciprocal => "Reciprocal",
            UnaryKind::Floor => "Floor",
            UnaryKind::Ceil => "Ceil",
            UnaryKind::Round => "Round",
            UnaryKind::Sin => "Sin",
            UnaryKind::Cos => "Cos",
            UnaryKind::Tan => "Tan",
            UnaryKind::Asin => "Asin",
            UnaryKind::Acos => "Acos",
            UnaryKind::Atan => "Atan",
            UnaryKind::Sinh => "Sinh",
            UnaryKind::Cosh => "Cosh",
            UnaryKind::Tanh => "Tanh",
            UnaryKind::Asinh => "Asinh",
            UnaryKind::Acosh => "Acosh",
            UnaryKind::Atanh => "Atanh",
            UnaryKind::Erf => "Erf",
            UnaryKind::Sigmoid => "Sigmoid",
            UnaryKind::Relu => "Relu",
            UnaryKind::Softplus => "Softplus",
            UnaryKind::Softsign => "Softsign",
            UnaryKind::Not => "Not",
            UnaryKind::BitwiseNot => "BitwiseNot",
            UnaryKind::IsNaN => "IsNaN",
            UnaryKind::IsInf { .. } => "IsInf",
            UnaryKind::LeakyRelu { .. } => "LeakyRelu",
            UnaryKind::Elu { .. } => "Elu",
            UnaryKind::Selu { .. } => "Selu",
            UnaryKind::Celu { .. } => "Celu",
            UnaryKind::HardSigmoid { .. } => "HardSigmoid",
            UnaryKind::HardSwish => "HardSwish",
            UnaryKind::Mish => "Mish",
            UnaryKind::Gelu { .. } => "Gelu",
            UnaryKind::ThresholdedRelu { .. } => "ThresholdedRelu",
            UnaryKind::Shrink { .. } => "Shrink",
            UnaryKind::Swish { .. } => "Swish",
            UnaryKind::Clip { .. } => "Clip",
        }
    }
}
