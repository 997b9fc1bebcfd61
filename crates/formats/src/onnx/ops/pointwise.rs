//! Pointwise operators.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::narrow::{Narrowing, Overflow, PowerRounding};
use kilim_core::ops::{Binary, BinaryKind, BitCast, Cast, CastLike, Clip, Unary, UnaryKind, Where};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

pub static OPERATORS: Family = OpTable(&[
    ("Abs", |b| unary(b, UnaryKind::Abs)),
    ("Acos", |b| unary(b, UnaryKind::Acos)),
    ("Acosh", |b| unary(b, UnaryKind::Acosh)),
    ("Add", |b| binary(b, BinaryKind::Add)),
    ("And", |b| binary(b, BinaryKind::And)),
    ("Asin", |b| unary(b, UnaryKind::Asin)),
    ("Asinh", |b| unary(b, UnaryKind::Asinh)),
    ("Atan", |b| unary(b, UnaryKind::Atan)),
    ("Atanh", |b| unary(b, UnaryKind::Atanh)),
    ("BitCast", |b| {
        let to = dtype(b.int_or("to", 0)?)?;
        b.emit_same(BitCast { to })
    }),
    ("BitShift", bit_shift),
    ("BitwiseAnd", |b| binary(b, BinaryKind::BitwiseAnd)),
    ("BitwiseNot", |b| unary(b, UnaryKind::BitwiseNot)),
    ("BitwiseOr", |b| binary(b, BinaryKind::BitwiseOr)),
    ("BitwiseXor", |b| binary(b, BinaryKind::BitwiseXor)),
    ("Cast", cast),
    ("CastLike", cast_like),
    ("Ceil", |b| unary(b, UnaryKind::Ceil)),
    ("Celu", celu),
    ("Clip", clip),
    ("Cos", |b| unary(b, UnaryKind::Cos)),
    ("Cosh", |b| unary(b, UnaryKind::Cosh)),
    ("Div", |b| binary(b, BinaryKind::Div)),
    ("Elu", elu),
    ("Equal", |b| binary(b, BinaryKind::Equal)),
    ("Erf", |b| unary(b, UnaryKind::Erf)),
    ("Exp", |b| unary(b, UnaryKind::Exp)),
    ("Floor", |b| unary(b, UnaryKind::Floor)),
    ("Gelu", gelu),
    ("Greater", |b| binary(b, BinaryKind::Greater)),
    ("GreaterOrEqual", |b| binary(b, BinaryKind::GreaterOrEqual)),
    ("HardSigmoid", hard_sigmoid),
    ("HardSwish", |b| unary(b, UnaryKind::HardSwish)),
    ("Identity", identity),
    ("IsInf", is_inf),
    ("IsNaN", |b| is_special(b, UnaryKind::IsNaN)),
    ("LeakyRelu", leaky_relu),
    ("Less", |b| binary(b, BinaryKind::Less)),
    ("LessOrEqual", |b| binary(b, BinaryKind::LessOrEqual)),
    ("Log", |b| unary(b, UnaryKind::Log)),
    ("Max", |b| variadic(b, BinaryKind::Max)),
    ("Mean", mean),
    ("Min", |b| variadic(b, BinaryKind::Min)),
    ("Mish", |b| unary(b, UnaryKind::Mish)),
    ("Mod", modulo),
    ("Mul", |b| binary(b, BinaryKind::Mul)),
    ("Neg", |b| unary(b, UnaryKind::Neg)),
    ("Not", |b| unary(b, UnaryKind::Not)),
    ("Or", |b| binary(b, BinaryKind::Or)),
    ("PRelu", p_relu),
    ("Pow", |b| binary(b, BinaryKind::Pow)),
    ("Reciprocal", |b| unary(b, UnaryKind::Reciprocal)),
    ("Relu", |b| unary(b, UnaryKind::Relu)),
    ("Round", |b| unary(b, UnaryKind::Round)),
    ("Selu", selu),
    ("Shrink", shrink),
    ("Sigmoid", |b| unary(b, UnaryKind::Sigmoid)),
    ("Sign", |b| unary(b, UnaryKind::Sign)),
    ("Sin", |b| unary(b, UnaryKind::Sin)),
    ("Sinh", |b| unary(b, UnaryKind::Sinh)),
    ("Softplus", |b| unary(b, UnaryKind::Softplus)),
    ("Softsign", |b| unary(b, UnaryKind::Softsign)),
    ("Sqrt", |b| unary(b, UnaryKind::Sqrt)),
    ("Sub", |b| binary(b, BinaryKind::Sub)),
    ("Sum", |b| variadic(b, BinaryKind::Add)),
    ("Swish", swish),
    ("Tan", |b| unary(b, UnaryKind::Tan)),
    ("Tanh", |b| unary(b, UnaryKind::Tanh)),
    ("ThresholdedRelu", thresholded_relu),
    ("Where", |b| b.emit_same(Where)),
    ("Xor", |b| binary(b, BinaryKind::Xor)),
]);

fn unary(b: &mut NodeBuilder, kind: UnaryKind) -> Result<()> {
    let x = b.input(0)?;
    b.emit(Unary(kind), &[Some(x)])
}

fn identity(b: &mut NodeBuilder) -> Result<()> {
    if let Some(values) = b.sequence(0) {
        b.bind_sequence(0, values);
        return Ok(());
    }
    unary(b, UnaryKind::Identity)
}

fn is_inf(b: &mut NodeBuilder) -> Result<()> {
    let negative = b.int_or("detect_negative", 1)? != 0;
    let positive = b.int_or("detect_positive", 1)? != 0;
    is_special(b, UnaryKind::IsInf { negative, positive })
}

/// Types that are only stored have their infinities and NaN in `float32`, too.
fn is_special(b: &mut NodeBuilder, kind: UnaryKind) -> Result<()> {
    let mut x = b.input(0)?;
    if b.dtype(x).is_some_and(DType::is_narrow_float) {
        x = b.cast(x, DType::F32)?;
    }
    b.emit(Unary(kind), &[Some(x)])
}

fn leaky_relu(b: &mut NodeBuilder) -> Result<()> {
    let alpha = b.float_or("alpha", 0.01)?;
    unary(b, UnaryKind::LeakyRelu { alpha })
}

fn elu(b: &mut NodeBuilder) -> Result<()> {
    let alpha = b.float_or("alpha", 1.0)?;
    unary(b, UnaryKind::Elu { alpha })
}

fn selu(b: &mut NodeBuilder) -> Result<()> {
    // Versions before 6 have these defaults to four digits.
    let (a, g) = match b.version() {
        ..6 => (1.6732, 1.0507),
        _ => (1.673_263_2, 1.050_701),
    };
    let alpha = b.float_or("alpha", a)?;
    let gamma = b.float_or("gamma", g)?;
    unary(b, UnaryKind::Selu { alpha, gamma })
}

fn celu(b: &mut NodeBuilder) -> Result<()> {
    let alpha = b.float_or("alpha", 1.0)?;
    unary(b, UnaryKind::Celu { alpha })
}

fn hard_sigmoid(b: &mut NodeBuilder) -> Result<()> {
    let alpha = b.float_or("alpha", 0.2)?;
    let beta = b.float_or("beta", 0.5)?;
    unary(b, UnaryKind::HardSigmoid { alpha, beta })
}

fn gelu(b: &mut NodeBuilder) -> Result<()> {
    let tanh = match b.text_or("approximate", "none")? {
        "none" => false,
        "tanh" => true,
        other => return Err(unknown("approximate", other)),
    };
    unary(b, UnaryKind::Gelu { tanh })
}

fn thresholded_relu(b: &mut NodeBuilder) -> Result<()> {
    let alpha = b.float_or("alpha", 1.0)?;
    unary(b, UnaryKind::ThresholdedRelu { alpha })
}

fn shrink(b: &mut NodeBuilder) -> Result<()> {
    let bias = b.float_or("bias", 0.0)?;
    let lambda = b.float_or("lambd", 0.5)?;
    unary(b, UnaryKind::Shrink { bias, lambda })
}

fn swish(b: &mut NodeBuilder) -> Result<()> {
    let alpha = b.float_or("alpha", 1.0)?;
    unary(b, UnaryKind::Swish { alpha })
}

fn binary(b: &mut NodeBuilder, kind: BinaryKind) -> Result<()> {
    let left = b.input(0)?;
    let right = b.input(1)?;
    let right = match b.int("axis")? {
        Some(axis) if b.version() < 7 => aligned(b, left, right, axis)?,
        _ => right,
    };
    b.emit(Binary::new(kind), &[Some(left), Some(right)])
}

/// Before operator set 7 an `axis` says at which dimension of the left operand the right one
/// begins.
fn aligned(b: &mut NodeBuilder, left: ValueId, right: ValueId, axis: i64) -> Result<ValueId> {
    let begin = b.axis_of(left, axis)?;
    let (outer, inner) = (b.rank(left)?, b.rank(right)?);
    let trailing = outer
        .checked_sub(begin + inner)
        .ok_or_else(|| invalid("the operands cannot be broadcast"))?;
    let axes: Vec<i64> = (inner..inner + trailing).map(|a| a as i64).collect();
    b.unsqueeze(right, &axes)
}

fn bit_shift(b: &mut NodeBuilder) -> Result<()> {
    let kind = match b.text_or("direction", "")? {
        "LEFT" => BinaryKind::ShiftLeft,
        "RIGHT" => BinaryKind::ShiftRight,
        other => return Err(unknown("direction", other)),
    };
    b.emit_same(Binary::new(kind))
}

fn modulo(b: &mut NodeBuilder) -> Result<()> {
    let kind = if b.flag("fmod")? {
        BinaryKind::Fmod
    } else {
        BinaryKind::Mod
    };
    b.emit_same(Binary::new(kind))
}

fn p_relu(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let mut slope = b.input(1)?;
    // Before operator set 7 a vector is one slope per channel.
    if b.version() < 7 && b.rank(slope)? == 1 && b.shape(slope) != Some(vec![1]) {
        slope = aligned(b, x, slope, 1)?;
    }
    b.emit(Binary::new(BinaryKind::PRelu), &[Some(x), Some(slope)])
}

/// Maps an operator with any number of operands to `kind` of two at a time.
fn variadic(b: &mut NodeBuilder, kind: BinaryKind) -> Result<()> {
    let operands = b.required_from(0)?;
    match operands.as_slice() {
        [] => Err(invalid("no inputs")),
        [one] => b.emit(Unary(UnaryKind::Identity), &[Some(*one)]),
        [first, middle @ .., last] => {
            let mut sum = *first;
            for &x in middle {
                sum = b.binary(kind, sum, x)?;
            }
            b.emit(Binary::new(kind), &[Some(sum), Some(*last)])
        }
    }
}

fn mean(b: &mut NodeBuilder) -> Result<()> {
    let operands = b.required_from(0)?;
    let Some((&first, rest)) = operands.split_first() else {
        return Err(invalid("no inputs"));
    };
    let mut sum = first;
    for &x in rest {
        sum = b.add(sum, x)?;
    }
    let count = b.number(operands.len() as f64, first)?;
    b.emit(Binary::new(BinaryKind::Div), &[Some(sum), Some(count)])
}

fn clip(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    // Some files of later operator sets have the attributes still.
    let old = b.attribute("min").is_some() || b.attribute("max").is_some();
    if b.version() >= 11 && (b.input_count() > 1 || !old) {
        return b.emit_same(Clip);
    }
    let bounds = ["min", "max"].map(|name| b.float(name));
    let mut inputs = vec![Some(x)];
    for bound in bounds {
        inputs.push(match bound? {
            Some(n) => Some(b.number(n.into(), x)?),
            None => None,
        });
    }
    b.emit(Clip, &inputs)
}

/// Names of element types, as operator sets before 6 have them.
fn named_dtype(name: &str) -> Result<kilim_core::DType> {
    let number = match name {
        "FLOAT" => 1,
        "UINT8" => 2,
        "INT8" => 3,
        "UINT16" => 4,
        "INT16" => 5,
        "INT32" => 6,
        "INT64" => 7,
        "STRING" => 8,
        "BOOL" => 9,
        "FLOAT16" => 10,
        "DOUBLE" => 11,
        "UINT32" => 12,
        "UINT64" => 13,
        other => return Err(unknown("to", other)),
    };
    dtype(number)
}

fn cast(b: &mut NodeBuilder) -> Result<()> {
    let to = if b.version() < 6 {
        named_dtype(b.text_or("to", "")?)?
    } else {
        dtype(b.int_or("to", 0)?)?
    };
    let (x, narrowing) = (b.input(0)?, narrowing(b)?);
    b.emit(Cast { to, narrowing }, &[Some(x)])
}

fn cast_like(b: &mut NodeBuilder) -> Result<()> {
    let (x, like, narrowing) = (b.input(0)?, b.input(1)?, narrowing(b)?);
    match b.dtype(like) {
        Some(to) => b.emit(Cast { to, narrowing }, &[Some(x)]),
        None => b.emit(CastLike { narrowing }, &[Some(x), Some(like)]),
    }
}

fn narrowing(b: &mut NodeBuilder) -> Result<Narrowing> {
    let overflow = match b.int_or("saturate", 1)? {
        0 => Overflow::Special,
        _ => Overflow::Saturate,
    };
    let rounding = match b.text_or("round_mode", "up")? {
        "up" => PowerRounding::Up,
        "down" => PowerRounding::Down,
        "nearest" => PowerRounding::Nearest,
        other => return Err(unknown("round_mode", other)),
    };
    Ok(Narrowing { overflow, rounding })
}
