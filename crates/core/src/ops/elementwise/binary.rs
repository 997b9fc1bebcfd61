//! Functions of two tensors.

use std::sync::Arc;

use super::broadcast_inputs;
use crate::Reflect;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Activation, Flow, InferContext, NodeView, Operator};
use crate::ops::rules::{BOOL, FLOATS, INTEGERS, NOT_COMPLEX, NUMBERS, Types, broadcasts_to, fact};

/// The function of [`Binary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
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
    /// The result for two dimensions, unknown where it is none; `None` where the function is not arithmetic.
    fn of_dims(self, a: &Dim, b: &Dim) -> Option<Dim> {
        Some(match self {
            BinaryKind::Add => a.plus(b),
            BinaryKind::Mul => a.times(b),
            BinaryKind::Sub => a.minus(b),
            BinaryKind::Div if *b == Dim::Known(1) => a.clone(),
            BinaryKind::Div => a.map(|x| b.known().and_then(|y| x.checked_div(y))),
            _ => return None,
        })
    }

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
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Binary {
    pub kind: BinaryKind,
    /// Applied to the result; only on `float32`.
    pub activation: Activation,
}

impl Binary {
    /// The operator of this kind without an activation.
    pub fn new(kind: BinaryKind) -> Binary {
        Binary {
            kind,
            activation: Activation::None,
        }
    }
}

impl Operator for Binary {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    signature! { (a, b) -> (output) }

    fn flow(&self) -> Flow {
        let commutes = matches!(
            self.kind,
            BinaryKind::Add
                | BinaryKind::Mul
                | BinaryKind::And
                | BinaryKind::Or
                | BinaryKind::Xor
                | BinaryKind::BitwiseAnd
                | BinaryKind::BitwiseOr
                | BinaryKind::BitwiseXor
                | BinaryKind::Equal
        );
        Flow::joined(commutes)
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

    fn elements(&self, _: &InferContext, elements: &[Option<Vec<Dim>>]) -> Option<Vec<Dim>> {
        let [Some(a), Some(b)] = elements else {
            return None;
        };
        let len = match (a.len(), b.len()) {
            (n, m) if n == m => n,
            (1, n) | (n, 1) => n,
            _ => return None,
        };
        let element = |i: usize| self.kind.of_dims(&a[i % a.len()], &b[i % b.len()]);
        (0..len).map(element).collect()
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        use BinaryKind::{Add, Div, Max, Min, Mul, Sub};
        let arithmetic = matches!(self.kind, Add | Sub | Mul | Div | Max | Min);
        let activated = || Binary {
            kind: self.kind,
            activation,
        };
        let free = arithmetic && self.activation == Activation::None;
        free.then(|| Arc::new(activated()) as Arc<dyn Operator>)
    }

    fn passes_on(&self, node: &NodeView) -> bool {
        use BinaryKind::{Add, Div, Mul, Pow, Sub};
        let neutral = match self.kind {
            Mul | Div | Pow => 1.0,
            Add | Sub => 0.0,
            _ => return false,
        };
        let (from, to) = (node.input(0), node.output());
        self.activation == Activation::None
            && node.scalar(1) == Some(neutral)
            && node.keeps_shape()
            && from.map(|v| v.fact.dtype) == to.map(|v| v.fact.dtype)
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
