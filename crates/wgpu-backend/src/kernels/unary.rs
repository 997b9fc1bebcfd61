//! Pointwise functions of one tensor.

use kilim_core::DType;
use kilim_core::ops::{Dropout, Unary, UnaryKind};

use super::Kernels;
use super::movement::filled;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage::{Scalar, scalar};

pub(crate) const FLOAT_OPS: &[&str] = &[
    "Abs",
    "Neg",
    "Sign",
    "Exp",
    "Log",
    "Sqrt",
    "Reciprocal",
    "Floor",
    "Ceil",
    "Round",
    "Sin",
    "Cos",
    "Tan",
    "Asin",
    "Acos",
    "Atan",
    "Sinh",
    "Cosh",
    "Tanh",
    "Asinh",
    "Acosh",
    "Atanh",
    "Erf",
    "Sigmoid",
    "Relu",
    "Softplus",
    "Softsign",
    "IsNaN",
    "IsInf",
    "LeakyRelu",
    "Elu",
    "Selu",
    "Celu",
    "HardSigmoid",
    "HardSwish",
    "Mish",
    "Gelu",
    "GeluTanh",
    "ThresholdedRelu",
    "Shrink",
    "Swish",
    "Clip",
];
pub(crate) const INT_OPS: &[&str] = &["Abs", "Neg", "Sign", "Relu", "BitwiseNot", "Clip", "Wrap"];
pub(crate) const UINT_OPS: &[&str] = &["Abs", "Sign", "Not", "BitwiseNot", "Relu", "Clip", "Wrap"];

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Unary>(unary);
    kernels.add::<Dropout>(|_, l| dropout(l));
}

/// The name in the shader and up to two parameters.
fn operation(kind: &UnaryKind) -> (&'static str, f32, f32) {
    match *kind {
        UnaryKind::IsInf { negative, positive } => (
            "IsInf",
            f32::from(u8::from(negative)),
            f32::from(u8::from(positive)),
        ),
        UnaryKind::LeakyRelu { alpha }
        | UnaryKind::Elu { alpha }
        | UnaryKind::Celu { alpha }
        | UnaryKind::ThresholdedRelu { alpha }
        | UnaryKind::Swish { alpha } => (kind.name(), alpha, 0.0),
        UnaryKind::Selu { alpha, gamma } => ("Selu", alpha, gamma),
        UnaryKind::HardSigmoid { alpha, beta } => ("HardSigmoid", alpha, beta),
        UnaryKind::Gelu { tanh } => (if tanh { "GeluTanh" } else { "Gelu" }, 0.0, 0.0),
        UnaryKind::Shrink { bias, lambda } => ("Shrink", bias, lambda),
        UnaryKind::Clip { min, max } => ("Clip", min as f32, max as f32),
        _ => (kind.name(), 0.0, 0.0),
    }
}

fn unary(op: &Unary, l: &mut Lowering) -> Lowers {
    if op.0 == UnaryKind::Identity {
        return super::copy::whole(l);
    }
    let (x, y) = (l.input(0)?, l.output(0)?);
    let (name, mut a, mut b) = operation(&op.0);
    let Some(Scalar { name: t, spare }) = scalar(x.dtype) else {
        return refuse(format!("{name} on {} is not on the GPU", x.dtype));
    };
    let known = match t {
        "f32" => FLOAT_OPS,
        "i32" => INT_OPS,
        _ => UINT_OPS,
    };
    if !known.contains(&name) || (x.dtype == DType::Bool) != (name == "Not") {
        return refuse(format!("{name} on {} is not on the GPU", x.dtype));
    }
    if let UnaryKind::Clip { min, max } = op.0
        && t != "f32"
    {
        // The parameters of integer kernels are the bits of integers.
        let bits = |v: f64| match t {
            "i32" => f32::from_bits(v as i32 as u32),
            _ => f32::from_bits(v as u32),
        };
        (a, b) = (bits(min.ceil()), bits(max.floor()));
    }
    let count = y.elements();
    let (vec, units) = if count.is_multiple_of(4) {
        ("4", count / 4)
    } else {
        ("1", count)
    };
    l.linear(
        "unary",
        &[("T", t), ("OP", name), ("VEC", vec)],
        &[Operand::Input(0), Operand::Output(0)],
        Params::new().u(units).f(a).f(b).u(spare),
        units,
    );
    Ok(())
}

/// At inference: the data, and a mask of ones.
fn dropout(l: &mut Lowering) -> Lowers {
    if l.node.outputs.len() > 1 {
        let mask = l.output(1)?;
        filled(l, Operand::Output(1), [1, 0], mask)?;
    }
    super::copy::whole(l)
}
