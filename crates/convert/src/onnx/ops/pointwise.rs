//! Pointwise operators.

use kilim_core::error::{Result, unsupported};
use kilim_core::narrow::{Narrowing, Overflow, PowerRounding};
use kilim_core::ops::{Binary, BinaryKind, Cast, CastLike};

use super::Family;
use crate::onnx::form::{Form, Rule};
use crate::onnx::node::NodeForm;
use Rule::{As, Said, Told, Type};
use kilim_formats::build::OpTable;

/// A function whose parameters are attributes of the same names; `value` is its name.
const FUNCTION: Form = Form::of(&[
    ("alpha", As("alpha")),
    ("beta", As("beta")),
    ("bias", As("bias")),
    ("gamma", As("gamma")),
    ("lambda", As("lambd")),
    ("negative", As("detect_negative")),
    ("positive", As("detect_positive")),
    ("tanh", Said("approximate", &[("0", "none"), ("1", "tanh")])),
    ("value", Told),
]);
const TWO: Form = Form::of(&[("kind", Told)]).also(two);
const NONE: Form = Form::of(&[]);

pub static OPERATORS: Family = OpTable(&[
    ("Abs", FUNCTION),
    ("Acos", FUNCTION),
    ("Acosh", FUNCTION),
    ("Add", TWO),
    ("And", TWO),
    ("Asin", FUNCTION),
    ("Asinh", FUNCTION),
    ("Atan", FUNCTION),
    ("Atanh", FUNCTION),
    ("BitCast", Form::of(&[("to", Type("to"))]).since(26)),
    ("BitShift", TWO),
    ("BitwiseAnd", TWO.since(18)),
    ("BitwiseNot", FUNCTION.since(18)),
    ("BitwiseOr", TWO.since(18)),
    ("BitwiseXor", TWO.since(18)),
    (
        "Cast",
        Form::of(&[
            ("narrowing", Told),
            ("overflow", Told),
            ("rounding", Told),
            ("to", Type("to")),
        ])
        .also(|n| narrowing(n, n.op::<Cast>()?.narrowing)),
    ),
    (
        "CastLike",
        Form::of(&[("narrowing", Told), ("overflow", Told), ("rounding", Told)])
            .also(|n| narrowing(n, n.op::<CastLike>()?.narrowing)),
    ),
    ("Ceil", FUNCTION),
    ("Celu", FUNCTION),
    ("Clip", NONE),
    ("Cos", FUNCTION),
    ("Cosh", FUNCTION),
    ("Div", TWO),
    ("Dropout", NONE),
    ("Elu", FUNCTION),
    ("Equal", TWO),
    ("Erf", FUNCTION),
    ("Exp", FUNCTION),
    ("Floor", FUNCTION),
    ("Gelu", FUNCTION.since(20)),
    ("Greater", TWO),
    ("GreaterOrEqual", TWO),
    ("HardSigmoid", FUNCTION),
    ("HardSwish", FUNCTION),
    ("Identity", FUNCTION),
    ("IsInf", FUNCTION),
    ("IsNaN", FUNCTION),
    ("LeakyRelu", FUNCTION),
    ("Less", TWO),
    ("LessOrEqual", TWO),
    ("Log", FUNCTION),
    ("Max", TWO),
    ("Min", TWO),
    ("Mish", FUNCTION.since(18)),
    ("Mod", TWO),
    ("Mul", TWO),
    ("Neg", FUNCTION),
    ("Not", FUNCTION),
    ("Or", TWO),
    ("PRelu", TWO),
    ("Pow", TWO),
    ("Reciprocal", FUNCTION),
    ("Relu", FUNCTION),
    ("Round", FUNCTION),
    ("Selu", FUNCTION),
    ("Shrink", FUNCTION),
    ("Sigmoid", FUNCTION),
    ("Sign", FUNCTION),
    ("Sin", FUNCTION),
    ("Sinh", FUNCTION),
    ("Softplus", FUNCTION),
    ("Softsign", FUNCTION),
    ("Sqrt", FUNCTION),
    ("Sub", TWO),
    ("Swish", FUNCTION.since(24)),
    ("Tan", FUNCTION),
    ("Tanh", FUNCTION),
    ("ThresholdedRelu", FUNCTION),
    ("Where", NONE),
    ("Xor", TWO),
]);

/// What the name of an operator on two operands leaves open.
fn two(n: &mut NodeForm) -> Result<()> {
    match n.op::<Binary>()?.kind {
        BinaryKind::ShiftLeft => n.set_text("direction", "LEFT"),
        BinaryKind::ShiftRight => n.set_text("direction", "RIGHT"),
        BinaryKind::Fmod => n.set_int("fmod", 1),
        BinaryKind::Mod if n.dtype(0).is_some_and(|d| !d.is_integer()) => {
            return Err(unsupported("a remainder of no integers"));
        }
        _ => {}
    }
    Ok(())
}

/// Conversions say how they narrow from operator set 19 on, and how they round to powers of two from 24 on.
fn narrowing(n: &mut NodeForm, narrowing: Narrowing) -> Result<()> {
    if narrowing.overflow == Overflow::Special {
        n.needs(19);
        n.set_int("saturate", 0);
    }
    let rounding = match narrowing.rounding {
        PowerRounding::Up => return Ok(()),
        PowerRounding::Down => "down",
        PowerRounding::Nearest => "nearest",
    };
    n.needs(24);
    n.set_text("round_mode", rounding);
    Ok(())
}
