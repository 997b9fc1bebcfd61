//! Pointwise functions of one tensor.

use kilim_core::DType;
use kilim_core::ops::{Dropout, Unary, UnaryKind};

use crate::device::storage::{Scalar, scalar};
use crate::kernels::Kernels;
use crate::kernels::movement::{copy, filled};
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::elementwise::unary::{Case, FloatOp, Launch, Params, SignedOp, UnsignedOp};
use crate::shaders::{Operand, Target, Word};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Unary>(unary);
    kernels.add::<Dropout>(|_, l| dropout(l));
}

fn float_op(kind: &UnaryKind) -> Option<FloatOp> {
    Some(match kind {
        UnaryKind::Abs => FloatOp::Abs,
        UnaryKind::Neg => FloatOp::Neg,
        UnaryKind::Sign => FloatOp::Sign,
        UnaryKind::Exp => FloatOp::Exp,
        UnaryKind::Log => FloatOp::Log,
        UnaryKind::Sqrt => FloatOp::Sqrt,
        UnaryKind::Reciprocal => FloatOp::Reciprocal,
        UnaryKind::Floor => FloatOp::Floor,
        UnaryKind::Ceil => FloatOp::Ceil,
        UnaryKind::Round => FloatOp::Round,
        UnaryKind::Sin => FloatOp::Sin,
        UnaryKind::Cos => FloatOp::Cos,
        UnaryKind::Tan => FloatOp::Tan,
        UnaryKind::Asin => FloatOp::Asin,
        UnaryKind::Acos => FloatOp::Acos,
        UnaryKind::Atan => FloatOp::Atan,
        UnaryKind::Sinh => FloatOp::Sinh,
        UnaryKind::Cosh => FloatOp::Cosh,
        UnaryKind::Tanh => FloatOp::Tanh,
        UnaryKind::Asinh => FloatOp::Asinh,
        UnaryKind::Acosh => FloatOp::Acosh,
        UnaryKind::Atanh => FloatOp::Atanh,
        UnaryKind::Erf => FloatOp::Erf,
        UnaryKind::Sigmoid => FloatOp::Sigmoid,
        UnaryKind::Relu => FloatOp::Relu,
        UnaryKind::Softplus => FloatOp::Softplus,
        UnaryKind::Softsign => FloatOp::Softsign,
        UnaryKind::IsNaN => FloatOp::IsNaN,
        UnaryKind::IsInf { .. } => FloatOp::IsInf,
        UnaryKind::LeakyRelu { .. } => FloatOp::LeakyRelu,
        UnaryKind::Elu { .. } => FloatOp::Elu,
        UnaryKind::Selu { .. } => FloatOp::Selu,
        UnaryKind::Celu { .. } => FloatOp::Celu,
        UnaryKind::HardSigmoid { .. } => FloatOp::HardSigmoid,
        UnaryKind::HardSwish => FloatOp::HardSwish,
        UnaryKind::Mish => FloatOp::Mish,
        UnaryKind::Gelu { tanh: false } => FloatOp::Gelu,
        UnaryKind::Gelu { tanh: true } => FloatOp::GeluTanh,
        UnaryKind::ThresholdedRelu { .. } => FloatOp::ThresholdedRelu,
        UnaryKind::Shrink { .. } => FloatOp::Shrink,
        UnaryKind::Swish { .. } => FloatOp::Swish,
        UnaryKind::Clip { .. } => FloatOp::Clip,
        UnaryKind::Identity | UnaryKind::Not | UnaryKind::BitwiseNot => return None,
    })
}

fn signed_op(kind: &UnaryKind) -> Option<SignedOp> {
    Some(match kind {
        UnaryKind::Abs => SignedOp::Abs,
        UnaryKind::Neg => SignedOp::Neg,
        UnaryKind::Sign => SignedOp::Sign,
        UnaryKind::Relu => SignedOp::Relu,
        UnaryKind::BitwiseNot => SignedOp::BitwiseNot,
        UnaryKind::Clip { .. } => SignedOp::Clip,
        _ => return None,
    })
}

fn unsigned_op(kind: &UnaryKind) -> Option<UnsignedOp> {
    Some(match kind {
        UnaryKind::Abs => UnsignedOp::Abs,
        UnaryKind::Sign => UnsignedOp::Sign,
        UnaryKind::Not => UnsignedOp::Not,
        UnaryKind::Relu => UnsignedOp::Relu,
        UnaryKind::BitwiseNot => UnsignedOp::BitwiseNot,
        UnaryKind::Clip { .. } => UnsignedOp::Clip,
        _ => return None,
    })
}

/// The parameters `a` and `b`; those of integer kernels are the bits of integers.
fn parameters(kind: &UnaryKind, word: Word) -> [f32; 2] {
    match *kind {
        UnaryKind::IsInf { negative, positive } => {
            [negative, positive].map(|v| f32::from(u8::from(v)))
        }
        UnaryKind::LeakyRelu { alpha }
        | UnaryKind::Elu { alpha }
        | UnaryKind::Celu { alpha }
        | UnaryKind::ThresholdedRelu { alpha }
        | UnaryKind::Swish { alpha } => [alpha, 0.0],
        UnaryKind::Selu { alpha, gamma } => [alpha, gamma],
        UnaryKind::HardSigmoid { alpha, beta } => [alpha, beta],
        UnaryKind::Shrink { bias, lambda } => [bias, lambda],
        UnaryKind::Clip { min, max } => match word {
            Word::F32 => [min as f32, max as f32],
            Word::I32 => [min.ceil(), max.floor()].map(|v| f32::from_bits(v as i32 as u32)),
            Word::U32 => [min.ceil(), max.floor()].map(|v| f32::from_bits(v as u32)),
        },
        _ => [0.0; 2],
    }
}

fn unary(op: &Unary, l: &mut Lowering) -> Lowers {
    let kind = &op.0;
    if *kind == UnaryKind::Identity {
        return copy::whole(l);
    }
    let (x, y) = (l.input(0)?, l.output(0)?);
    let scalar = scalar(x.dtype);
    let case = scalar.and_then(|s| match s.word {
        Word::F32 => float_op(kind).map(|op| Case::Float { op }),
        Word::I32 => signed_op(kind).map(|op| Case::Signed { op }),
        Word::U32 => unsigned_op(kind).map(|op| Case::Unsigned { op }),
    });
    let fits = (x.dtype == DType::Bool) == (*kind == UnaryKind::Not);
    let (Some(Scalar { word, spare }), Some(case), true) = (scalar, case, fits) else {
        return refuse(format!("{} on {} is not on the GPU", kind.name(), x.dtype));
    };
    let count = y.elements();
    let quads = count.is_multiple_of(4);
    let units = if quads { count / 4 } else { count };
    let [a, b] = parameters(kind, word);
    let launch = Launch {
        case,
        quads,
        x: Operand::Input(0),
        y: Target::Output(0),
        params: Params { units, a, b, spare },
    };
    l.linear(launch, units);
    Ok(())
}

/// Lowers Dropout at inference: the data, and a mask of ones.
fn dropout(l: &mut Lowering) -> Lowers {
    if l.node.outputs.len() > 1 {
        let mask = l.output(1)?;
        filled(l, Target::Output(1), [1, 0], mask)?;
    }
    copy::whole(l)
}
