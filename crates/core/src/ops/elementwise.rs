//! Pointwise operators, with numpy broadcasting where there are several inputs.

use super::*;

/// The function of [`Unary`].
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// To nearest, ties to even.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Unary(pub UnaryKind);

/// The function of [`Binary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryKind {
    Add,
    Sub,
    Mul,
    /// Integers truncate towards zero.
    Div,
    Pow,
    /// The sign of the divisor (Python's `%`).
    Mod,
    /// The sign of the dividend (C's `fmod`).
    Fmod,
    Max,
    Min,
    And,
    Or,
    Xor,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `a < 0 ? a * b : a`.
    PRelu,
}

impl BinaryKind {
    /// True where the output is `bool` whatever the inputs are.
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryKind::Equal
                | BinaryKind::Less
                | BinaryKind::LessOrEqual
                | BinaryKind::Greater
                | BinaryKind::GreaterOrEqual
        )
    }
}

/// Two inputs that broadcast against each other, of one element type but for Pow.
#[derive(Clone, Debug, PartialEq)]
pub struct Binary {
    pub kind: BinaryKind,
    /// Applied to the result; only on `float32`.
    pub activation: Activation,
}

impl Binary {
    pub fn new(kind: BinaryKind) -> Binary {
        Binary {
            kind,
            activation: Activation::None,
        }
    }
}

/// `condition ? a : b`, all three broadcast.
#[derive(Clone, Debug, PartialEq)]
pub struct Where;

/// `min(max(x, lower), upper)`; inputs x, optional lower, optional upper (scalars).
#[derive(Clone, Debug, PartialEq)]
pub struct Clip;

/// Converts the element type.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    pub to: DType,
}

/// Converts the first input to the element type of the second.
#[derive(Clone, Debug, PartialEq)]
pub struct CastLike;

/// Dropout at inference: the data, and a mask of ones if asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropout;

impl Operator for Where {
    fn name(&self) -> &'static str {
        "Where"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Clip {
    fn name(&self) -> &'static str {
        "Clip"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Cast {
    fn name(&self) -> &'static str {
        "Cast"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for CastLike {
    fn name(&self) -> &'static str {
        "CastLike"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Dropout {
    fn name(&self) -> &'static str {
        "Dropout"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Unary {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Binary {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl UnaryKind {
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

impl BinaryKind {
    /// The name as ONNX spells it.
    pub const fn name(self) -> &'static str {
        match self {
            BinaryKind::Add => "Add",
            BinaryKind::Sub => "Sub",
            BinaryKind::Mul => "Mul",
            BinaryKind::Div => "Div",
            BinaryKind::Pow => "Pow",
            BinaryKind::Mod => "Mod",
            BinaryKind::Fmod => "Mod",
            BinaryKind::Max => "Max",
            BinaryKind::Min => "Min",
            BinaryKind::And => "And",
            BinaryKind::Or => "Or",
            BinaryKind::Xor => "Xor",
            BinaryKind::BitwiseAnd => "BitwiseAnd",
            BinaryKind::BitwiseOr => "BitwiseOr",
            BinaryKind::BitwiseXor => "BitwiseXor",
            BinaryKind::ShiftLeft => "BitShift",
            BinaryKind::ShiftRight => "BitShift",
            BinaryKind::Equal => "Equal",
            BinaryKind::Less => "Less",
            BinaryKind::LessOrEqual => "LessOrEqual",
            BinaryKind::Greater => "Greater",
            BinaryKind::GreaterOrEqual => "GreaterOrEqual",
            BinaryKind::PRelu => "PRelu",
        }
    }
}
