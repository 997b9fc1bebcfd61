//! Pointwise operators.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::narrow::{Narrowing, Overflow, PowerRounding};
use kilim_core::ops::{Binary, BinaryKind, BitCast, Cast, CastLike, Clip, Unary, UnaryKind, Where};

use super::OpTable;
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

pub fn register(table: &mut OpTable) {
    table.add("Identity", identity);
    table.add("Abs", |b| unary(b, UnaryKind::Abs));
    table.add("Neg", |b| unary(b, UnaryKind::Neg));
    table.add("Sign", |b| unary(b, UnaryKind::Sign));
    table.add("Exp", |b| unary(b, UnaryKind::Exp));
    table.add("Log", |b| unary(b, UnaryKind::Log));
    table.add("Sqrt", |b| unary(b, UnaryKind::Sqrt));
    table.add("Reciprocal", |b| unary(b, UnaryKind::Reciprocal));
    table.add("Floor", |b| unary(b, UnaryKind::Floor));
    table.add("Ceil", |b| unary(b, UnaryKind::Ceil));
    table.add("Round", |b| unary(b, UnaryKind::Round));
    table.add("Sin", |b| unary(b, UnaryKind::Sin));
    table.add("Cos", |b| unary(b, UnaryKind::Cos));
    table.add("Tan", |b| unary(b, UnaryKind::Tan));
    table.add("Asin", |b| unary(b, UnaryKind::Asin));
    table.add("Acos", |b| unary(b, UnaryKind::Acos));
    table.add("Atan", |b| unary(b, UnaryKind::Atan));
    table.add("Sinh", |b| unary(b, UnaryKind::Sinh));
    table.add("Cosh", |b| unary(b, UnaryKind::Cosh));
    table.add("Tanh", |b| unary(b, UnaryKind::Tanh));
    table.add("Asinh", |b| unary(b, UnaryKind::Asinh));
    table.add("Acosh", |b| unary(b, UnaryKind::Acosh));
    table.add("Atanh", |b| unary(b, UnaryKind::Atanh));
    table.add("Erf", |b| unary(b, UnaryKind::Erf));
    table.add("Sigmoid", |b| unary(b, UnaryKind::Sigmoid));
    table.add("Relu", |b| unary(b, UnaryKind::Relu));
    table.add("Softplus", |b| unary(b, UnaryKind::Softplus));
    table.add("Softsign", |b| unary(b, UnaryKind::Softsign));
    table.add("Not", |b| unary(b, UnaryKind::Not));
    table.add("BitwiseNot", |b| unary(b, UnaryKind::BitwiseNot));
    table.add("IsNaN", |b| is_special(b, UnaryKind::IsNaN));
    table.add("HardSwish", |b| unary(b, UnaryKind::HardSwish));
    table.add("Mish", |b| unary(b, UnaryKind::Mish));
    table.add("IsInf", is_inf);
    table.add("LeakyRelu", leaky_relu);
    table.add("Elu", elu);
    table.add("Selu", selu);
    table.add("Celu", celu);
    table.add("HardSigmoid", hard_sigmoid);
    table.add("Gelu", gelu);
    table.add("ThresholdedRelu", thresholded_relu);
    table.add("Shrink", shrink);
    table.add("Swish", swish);

    table.add("Add", |b| binary(b, BinaryKind::Add));
    table.add("Sub", |b| binary(b, BinaryKind::Sub));
    table.add("Mul", |b| binary(b, BinaryKind::Mul));
    table.add("Div", |b| binary(b, BinaryKind::Div));
    table.add("Pow", |b| binary(b, BinaryKind::Pow));
    table.add("And", |b| binary(b, BinaryKind::And));
    table.add("Or", |b| binary(b, BinaryKind::Or));
    table.add("Xor", |b| binary(b, BinaryKind::Xor));
    table.add("BitwiseAnd", |b| binary(b, BinaryKind::BitwiseAnd));
    table.add("BitwiseOr", |b| binary(b, BinaryKind::BitwiseOr));
    table.add("BitwiseXor", |b| binary(b, BinaryKind::BitwiseXor));
    table.add("Equal", |b| binary(b, BinaryKind::Equal));
    table.add("Less", |b| binary(b, BinaryKind::Less));
    table.add("LessOrEqual", |b| binary(b, BinaryKind::LessOrEqual));
    table.add("Greater", |b| binary(b, BinaryKind::Greater));
    table.add("GreaterOrEqual", |b| binary(b, BinaryKind::GreaterOrEqual));
    table.add("BitShift", bit_shift);
    table.add("Mod", modulo);
    table.add("PRelu", p_relu);
    table.add("Max", |b| variadic(b, BinaryKind::Max));
    table.add("Min", |b| variadic(b, BinaryKind::Min));
    table.add("Sum", |b| variadic(b, BinaryKind::Add));
    table.add("Mean", mean);

    table.add("Where", |b| b.emit_same(Where));
    table.add("Clip", clip);
    table.add("Cast", cast);
    table.add("CastLike", cast_like);
    table.add("BitCast", |b| {
        let to = dtype(b.int_or("to", 0)?)?;
        b.emit_same(BitCast { to })
    });
}

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

/// Two operands at a time.
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
