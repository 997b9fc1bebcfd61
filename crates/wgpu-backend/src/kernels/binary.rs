//! Pointwise functions of two tensors that broadcast against each other.

use kilim_core::DType;
use kilim_core::ops::{Activation, Binary, BinaryKind};

use super::Kernels;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage::{Scalar, scalar};
use crate::walk::{broadcast_strides, collapse};

pub(crate) const FLOAT_OPS: &[&str] = &[
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Mod",
    "Fmod",
    "Max",
    "Min",
    "Equal",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
    "PRelu",
];
pub(crate) const INT_OPS: &[&str] = &[
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Mod",
    "Fmod",
    "Max",
    "Min",
    "Equal",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "ShiftLeft",
    "ShiftRight",
    "Pow",
];
/// On 64-bit integers.
pub(crate) const WIDE_OPS: &[&str] = INT_OPS;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Binary>(binary);
}

/// The name in the shader.
fn operation(kind: BinaryKind) -> &'static str {
    match kind {
        BinaryKind::And => "BitwiseAnd",
        BinaryKind::Or => "BitwiseOr",
        BinaryKind::Xor => "BitwiseXor",
        BinaryKind::Fmod => "Fmod",
        BinaryKind::ShiftLeft => "ShiftLeft",
        BinaryKind::ShiftRight => "ShiftRight",
        other => other.name(),
    }
}

fn binary(op: &Binary, l: &mut Lowering) -> Lowers {
    let (a, b, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let name = operation(op.kind);
    if a.dtype != b.dtype {
        return refuse(format!(
            "{name} of {} and {} is not on the GPU",
            a.dtype, b.dtype
        ));
    }
    match a.dtype {
        DType::I64 => return wide("i64", op, l),
        DType::U64 => return wide("u64", op, l),
        _ => {}
    }
    let Some(Scalar { name: t, spare }) = scalar(a.dtype) else {
        return refuse(format!("{name} on {} is not on the GPU", a.dtype));
    };
    let known = if t == "f32" { FLOAT_OPS } else { INT_OPS };
    if !known.contains(&name) {
        return refuse(format!("{name} on {} is not on the GPU", a.dtype));
    }
    if op.activation != Activation::None && y.dtype != DType::F32 {
        return refuse("an activation is only applied to float32");
    }
    let walk = |shape: &[usize]| -> Lowers<Vec<i64>> {
        let s = broadcast_strides(shape, &y.shape)?;
        Ok(s.into_iter().map(|s| s as i64).collect())
    };
    let (mut dims, mut walks) = collapse(&y.shape, &[walk(&a.shape)?, walk(&b.shape)?])?;
    let last = dims.len() - 1;
    // Four elements at a time where rows, and every stride over rows, are multiples of four.
    let four = dims[last].is_multiple_of(4)
        && walks
            .iter()
            .all(|w| w[last] == 0 || w[..last].iter().all(|s| s % 4 == 0));
    let splat = |w: &Vec<i64>| if four && w[last] == 0 { "1" } else { "0" };
    let (splat_a, splat_b) = (splat(&walks[0]), splat(&walks[1]));
    if four {
        dims[last] /= 4;
        for (w, splat) in walks.iter_mut().zip([splat_a, splat_b]) {
            if splat == "0" {
                for s in &mut w[..last] {
                    *s /= 4;
                }
            }
        }
    }
    let same = l.same(0, 1);
    let units = dims.iter().product::<usize>();
    let params = Params::new()
        .dims(&dims)
        .signed(&walks[0])
        .signed(&walks[1])
        .u(dims.len())
        .u(if y.elements() == 0 { 0 } else { units })
        .activation(&op.activation)
        .u(spare);
    let defines = [
        ("T", t),
        ("OP", name),
        ("VEC", if four { "4" } else { "1" }),
        ("SPLAT_A", splat_a),
        ("SPLAT_B", splat_b),
        ("SAME", if same { "1" } else { "0" }),
    ];
    let units = if y.elements() == 0 { 0 } else { units };
    let operands: &[Operand] = if same {
        &[Operand::Input(0), Operand::Output(0)]
    } else {
        &[Operand::Input(0), Operand::Input(1), Operand::Output(0)]
    };
    l.linear("binary", &defines, operands, params, units);
    Ok(())
}

/// The same on 64-bit integers, `t` with or without a sign.
fn wide(t: &'static str, op: &Binary, l: &mut Lowering) -> Lowers {
    let (a, b, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let name = operation(op.kind);
    if !WIDE_OPS.contains(&name) {
        return refuse(format!("{name} on {} is not on the GPU", a.dtype));
    }
    let walk = |shape: &[usize]| -> Lowers<Vec<i64>> {
        let s = broadcast_strides(shape, &y.shape)?;
        Ok(s.into_iter().map(|s| s as i64).collect())
    };
    let (dims, walks) = collapse(&y.shape, &[walk(&a.shape)?, walk(&b.shape)?])?;
    let params = Params::new()
        .dims(&dims)
        .signed(&walks[0])
        .signed(&walks[1])
        .u(dims.len())
        .u(y.elements());
    l.linear(
        "binary64",
        &[("T", t), ("OP", name)],
        &[Operand::Input(0), Operand::Input(1), Operand::Output(0)],
        params,
        y.elements(),
    );
    Ok(())
}
