//! Pointwise functions of two tensors that broadcast against each other.

use kilim_core::DType;
use kilim_core::ops::{Activation, Binary, BinaryKind};

use crate::device::storage::{Scalar, scalar};
use crate::kernels::Kernels;
use crate::lowering::walk::{both, broadcast_steps, collapse};
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::elementwise::binary::{self, Case, FloatOp, IntegerT};
use crate::shaders::elementwise::binary64;
use crate::shaders::{IntegerBinary, Operand, Target, Word};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Binary>(binary);
}

fn float_op(kind: BinaryKind) -> Option<FloatOp> {
    Some(match kind {
        BinaryKind::Add => FloatOp::Add,
        BinaryKind::Sub => FloatOp::Sub,
        BinaryKind::Mul => FloatOp::Mul,
        BinaryKind::Div => FloatOp::Div,
        BinaryKind::Pow => FloatOp::Pow,
        BinaryKind::Mod => FloatOp::Mod,
        BinaryKind::Fmod => FloatOp::Fmod,
        BinaryKind::Max => FloatOp::Max,
        BinaryKind::Min => FloatOp::Min,
        BinaryKind::Equal => FloatOp::Equal,
        BinaryKind::Less => FloatOp::Less,
        BinaryKind::LessOrEqual => FloatOp::LessOrEqual,
        BinaryKind::Greater => FloatOp::Greater,
        BinaryKind::GreaterOrEqual => FloatOp::GreaterOrEqual,
        BinaryKind::PRelu => FloatOp::PRelu,
        BinaryKind::And
        | BinaryKind::Or
        | BinaryKind::Xor
        | BinaryKind::BitwiseAnd
        | BinaryKind::BitwiseOr
        | BinaryKind::BitwiseXor
        | BinaryKind::ShiftLeft
        | BinaryKind::ShiftRight => return None,
    })
}

/// Truth values are 0 and 1.
fn integer_op(kind: BinaryKind) -> Option<IntegerBinary> {
    Some(match kind {
        BinaryKind::Add => IntegerBinary::Add,
        BinaryKind::Sub => IntegerBinary::Sub,
        BinaryKind::Mul => IntegerBinary::Mul,
        BinaryKind::Div => IntegerBinary::Div,
        BinaryKind::Mod => IntegerBinary::Mod,
        BinaryKind::Fmod => IntegerBinary::Fmod,
        BinaryKind::Max => IntegerBinary::Max,
        BinaryKind::Min => IntegerBinary::Min,
        BinaryKind::Equal => IntegerBinary::Equal,
        BinaryKind::Less => IntegerBinary::Less,
        BinaryKind::LessOrEqual => IntegerBinary::LessOrEqual,
        BinaryKind::Greater => IntegerBinary::Greater,
        BinaryKind::GreaterOrEqual => IntegerBinary::GreaterOrEqual,
        BinaryKind::And | BinaryKind::BitwiseAnd => IntegerBinary::BitwiseAnd,
        BinaryKind::Or | BinaryKind::BitwiseOr => IntegerBinary::BitwiseOr,
        BinaryKind::Xor | BinaryKind::BitwiseXor => IntegerBinary::BitwiseXor,
        BinaryKind::ShiftLeft => IntegerBinary::ShiftLeft,
        BinaryKind::ShiftRight => IntegerBinary::ShiftRight,
        BinaryKind::Pow => IntegerBinary::Pow,
        BinaryKind::PRelu => return None,
    })
}

fn binary(op: &Binary, l: &mut Lowering) -> Lowers {
    let (a, b, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let name = op.kind.name();
    if a.dtype != b.dtype {
        return refuse(format!(
            "{name} of {} and {} is not on the GPU",
            a.dtype, b.dtype
        ));
    }
    let scalar = scalar(a.dtype);
    let integer = |t| integer_op(op.kind).map(|op| Case::Integer { t, op });
    let case = match (a.dtype, scalar.map(|s| s.word)) {
        (DType::I64, _) => return wide(binary64::T::I64, op, l),
        (DType::U64, _) => return wide(binary64::T::U64, op, l),
        (_, Some(Word::F32)) => float_op(op.kind).map(|op| Case::Float { op }),
        (_, Some(Word::I32)) => integer(IntegerT::I32),
        (_, Some(Word::U32)) => integer(IntegerT::U32),
        (_, None) => None,
    };
    let (Some(case), Some(Scalar { spare, .. })) = (case, scalar) else {
        return refuse(format!("{name} on {} is not on the GPU", a.dtype));
    };
    if op.activation != Activation::None && y.dtype != DType::F32 {
        return refuse("an activation is only applied to float32");
    }
    let steps_a = broadcast_steps(&a.shape, &y.shape)?;
    let steps_b = broadcast_steps(&b.shape, &y.shape)?;
    let (mut dims, mut walks) = collapse(&y.shape, &[steps_a, steps_b])?;
    let last = dims.len() - 1;
    // Four elements at a time where rows, and every stride over rows, are multiples of four.
    let quads = dims[last].is_multiple_of(4)
        && walks
            .iter()
            .all(|w| w[last] == 0 || w[..last].iter().all(|s| s % 4 == 0));
    let [splat_a, splat_b] = [0, 1].map(|i| quads && walks[i][last] == 0);
    if quads {
        dims[last] /= 4;
        for (w, splat) in walks.iter_mut().zip([splat_a, splat_b]) {
            if !splat {
                for s in &mut w[..last] {
                    *s /= 4;
                }
            }
        }
    }
    let units = match y.elements() {
        0 => 0,
        _ => dims.iter().product(),
    };
    let launch = binary::Launch {
        case,
        quads,
        splat_a,
        splat_b,
        a: Operand::Input(0),
        b: (!l.same(0, 1)).then_some(Operand::Input(1)),
        y: Target::Output(0),
        params: binary::Params {
            walk: both(&dims, &walks[0], &walks[1]),
            act: (&op.activation).into(),
            units,
            spare,
        },
    };
    l.linear(launch, units);
    Ok(())
}

/// A function of 64-bit integers, `t` with or without a sign.
fn wide(t: binary64::T, op: &Binary, l: &mut Lowering) -> Lowers {
    let (a, b, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let Some(kind) = integer_op(op.kind) else {
        let name = op.kind.name();
        return refuse(format!("{name} on {} is not on the GPU", a.dtype));
    };
    let steps_a = broadcast_steps(&a.shape, &y.shape)?;
    let steps_b = broadcast_steps(&b.shape, &y.shape)?;
    let (dims, walks) = collapse(&y.shape, &[steps_a, steps_b])?;
    let launch = binary64::Launch {
        t,
        op: kind,
        a: Operand::Input(0),
        b: Operand::Input(1),
        y: Target::Output(0),
        params: binary64::Params {
            walk: both(&dims, &walks[0], &walks[1]),
            units: y.elements(),
        },
    };
    l.linear(launch, y.elements());
    Ok(())
}
