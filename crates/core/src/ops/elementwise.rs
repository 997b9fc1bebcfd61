//! Pointwise operators, with numpy broadcasting where there are several inputs.

use super::*;
use crate::error::dtype_error;
use crate::narrow::Narrowing;

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
    /// Without an activation.
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

/// Converts the element type. Numbers become text in decimal form, as short as tells them apart;
/// text that is no number is an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    pub to: DType,
    pub narrowing: Narrowing,
}

impl Cast {
    /// A conversion as ONNX does it by default.
    pub fn new(to: DType) -> Cast {
        Cast {
            to,
            narrowing: Narrowing::default(),
        }
    }
}

/// Converts the first input to the element type of the second, as [`Cast`] does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CastLike {
    pub narrowing: Narrowing,
}

/// Gives the elements another type of as many bits, whatever these bits mean there.
#[derive(Clone, Debug, PartialEq)]
pub struct BitCast {
    pub to: DType,
}

/// Dropout at inference: the data, and a mask of ones if asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropout;

impl Operator for Where {
    fn name(&self) -> &'static str {
        "Where"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.require(3)?;
        ctx.typed(0, &BOOL)?;
        let dtype = ctx.common_type([1, 2])?;
        Ok(vec![fact(dtype, broadcast_inputs(ctx, 3)?)])
    }
}

impl Operator for Clip {
    fn name(&self) -> &'static str {
        "Clip"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NUMBERS)?;
        let dtype = ctx.common_type(0..3)?;
        ctx.scalar(1)?;
        ctx.scalar(2)?;
        Ok(vec![fact(dtype, ctx.shape(0)?.cloned())])
    }
}

impl Operator for Cast {
    fn name(&self) -> &'static str {
        "Cast"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NOT_COMPLEX)?;
        NOT_COMPLEX.check(0, Some(self.to))?;
        Ok(vec![fact(Some(self.to), ctx.shape(0)?.cloned())])
    }
}

impl Operator for CastLike {
    fn name(&self) -> &'static str {
        "CastLike"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NOT_COMPLEX)?;
        let to = ctx.typed(1, &NOT_COMPLEX)?;
        Ok(vec![fact(to, ctx.shape(0)?.cloned())])
    }
}

impl Operator for BitCast {
    fn name(&self) -> &'static str {
        "BitCast"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let bits = |d: DType| (d != DType::String).then_some(d.bits());
        if let Some(from) = ctx.dtype(0)?
            && (bits(from) != bits(self.to) || bits(from).is_none())
        {
            return Err(dtype_error("the bits of one element type are no other's")
                .with_expected(format!("elements of as many bits as {}", self.to))
                .with_got(from));
        }
        Ok(vec![fact(Some(self.to), ctx.shape(0)?.cloned())])
    }
}

impl Operator for Dropout {
    fn name(&self) -> &'static str {
        "Dropout"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let data = ctx.fact(0)?.clone();
        FLOATS.check(0, data.dtype)?;
        let mask = fact(Some(DType::Bool), data.shape.clone());
        Ok(some_of(ctx, [data, mask]))
    }
}

impl Operator for Unary {
    fn name(&self) -> &'static str {
        self.0.name()
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

    fn is_view(&self) -> bool {
        self.0 == UnaryKind::Identity
    }
}

impl Operator for Binary {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let types = self.kind.types();
        let left = ctx.typed(0, types)?;
        ctx.typed(1, types)?;
        let dtype = match self.kind {
            BinaryKind::Pow => left,
            kind if kind.is_comparison() => {
                ctx.common_type([0, 1])?;
                Some(DType::Bool)
            }
            _ => ctx.common_type([0, 1])?,
        };
        if self.activation != Activation::None {
            FLOATS.check(0, dtype)?;
        }
        let shape = broadcast_inputs(ctx, 2)?;
        if self.kind == BinaryKind::PRelu
            && let (Some(x), Some(slope)) = (ctx.shape(0)?, ctx.shape(1)?)
        {
            broadcasts_to(slope, x, "the slope")?;
        }
        Ok(vec![fact(dtype, shape)])
    }
}

/// The shape that the first `count` inputs broadcast to; `None` where a rank is unknown.
fn broadcast_inputs(ctx: &InferContext, count: usize) -> Result<Option<Shape>> {
    let mut all = Some(Shape::default());
    for i in 0..count {
        all = match (all, ctx.shape(i)?) {
            (Some(a), Some(b)) => Some(broadcast(&a, b)?),
            _ => None,
        };
    }
    Ok(all)
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

impl BinaryKind {
    /// The element types of the inputs.
    fn types(self) -> &'static Types {
        match self {
            BinaryKind::And | BinaryKind::Or | BinaryKind::Xor => &BOOL,
            BinaryKind::BitwiseAnd
            | BinaryKind::BitwiseOr
            | BinaryKind::BitwiseXor
            | BinaryKind::ShiftLeft
            | BinaryKind::ShiftRight => &INTEGERS,
            BinaryKind::Equal => &NOT_COMPLEX,
            _ => &NUMBERS,
        }
    }

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
