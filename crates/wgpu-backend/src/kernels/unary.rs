//! Pointwise functions of one tensor, and casts.

use kilim_core::DType;
use kilim_core::ops::{Cast, CastLike, Dropout, Unary, UnaryKind};

use super::Kernels;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;

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
pub(crate) const INT_OPS: &[&str] = &["Abs", "Neg", "Sign", "Relu", "BitwiseNot", "Clip"];
pub(crate) const UINT_OPS: &[&str] = &["Abs", "Sign", "Not", "BitwiseNot", "Relu"];

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Unary>(unary);
    kernels.add::<Cast>(|_, l| cast(l));
    kernels.add::<CastLike>(|_, l| cast(l));
    kernels.add::<Dropout>(|_, l| match l.node.outputs.len() {
        1 => super::copy::whole(l),
        _ => refuse("Dropout with a mask output is not on the GPU"),
    });
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
    let (t, known) = match x.dtype {
        DType::F32 => ("f32", FLOAT_OPS),
        DType::I32 => ("i32", INT_OPS),
        DType::U32 | DType::Bool => ("u32", UINT_OPS),
        d => return refuse(format!("{name} on {d} is not on the GPU")),
    };
    if !known.contains(&name) || (x.dtype == DType::Bool) != (name == "Not") {
        return refuse(format!("{name} on {} is not on the GPU", x.dtype));
    }
    if let (UnaryKind::Clip { min, max }, "i32") = (&op.0, t) {
        // The parameters of integer kernels are the bits of integers.
        let bits = |v: f64| f32::from_bits(v.clamp(i32::MIN.into(), i32::MAX.into()) as i32 as u32);
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
        Params::new().u(units).f(a).f(b),
        units,
    );
    Ok(())
}

/// The name of an element type in the cast shader.
fn element(dtype: DType) -> Lowers<&'static str> {
    Ok(match dtype {
        DType::F32 => "f32",
        DType::I32 => "i32",
        DType::U32 => "u32",
        DType::Bool => "bool",
        DType::I64 => "i64",
        d => return refuse(format!("casts of {d} are not on the GPU")),
    })
}

fn cast(l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    if x.dtype == y.dtype {
        return super::copy::whole(l);
    }
    let count = y.elements();
    let (input, output) = (Operand::Input(0), Operand::Output(0));
    match (x.dtype, y.dtype) {
        (DType::F32, DType::F16) => half("1", count, input, output, l),
        (DType::F16, DType::F32) => half("0", count, input, output, l),
        // Over float32, which holds every half exactly; what it rounds overflows a half.
        (DType::F16, to) => {
            let wide = l.scratch(count * 4);
            half("0", count, input, wide, l);
            convert("f32", element(to)?, count, wide, output, l);
        }
        (from, DType::F16) => {
            let wide = l.scratch(count * 4);
            convert(element(from)?, "f32", count, input, wide, l);
            half("1", count, wide, output, l);
        }
        (from, to) => convert(element(from)?, element(to)?, count, input, output, l),
    }
    Ok(())
}

/// Between float32 and half precision.
fn half(narrow: &'static str, count: usize, from: Operand, to: Operand, l: &mut Lowering) {
    let params = Params::new().u(count);
    let pairs = count.div_ceil(2);
    l.linear("half", &[("NARROW", narrow)], &[from, to], params, pairs);
}

fn convert(
    from: &'static str,
    to: &'static str,
    count: usize,
    x: Operand,
    y: Operand,
    l: &mut Lowering,
) {
    let defines = [("FROM", from), ("TO", to)];
    l.linear("cast", &defines, &[x, y], Params::new().u(count), count);
}
