//! Functions of tensors and numbers, by the names that expressions and `torch.` have for the same.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, UnaryKind};

use super::import::Import;
use super::value::Value;
use super::{invalid, literals};

/// A function of an expression.
///
/// # Errors
/// `Unsupported` where it is unknown, `InvalidModel` where the arguments do not fit.
pub fn call(imp: &mut Import, name: &str, arguments: &[Value]) -> Result<Value> {
    if name == "size" {
        return size(imp, arguments);
    }
    if let Some(literal) = literals::call(name, arguments) {
        return Ok(literal);
    }
    match arguments {
        [one] => unary(imp, name, one),
        [a, b] => binary(imp, name, a, b),
        _ => Err(invalid("a function of an expression has other arguments").with_got(name)),
    }
    .map(Value::Tensor)
}

/// `size(@0)` and `size(@0,1)`. Sizes that are known are integers.
pub fn size(imp: &mut Import, arguments: &[Value]) -> Result<Value> {
    let (Some(Value::Tensor(x)), axis) = (arguments.first(), arguments.get(1)) else {
        return Err(invalid("the size of what is no tensor"));
    };
    let rank = imp.rank(*x)?;
    let mut of_axis = |axis: i64| -> Result<Value> {
        let axis = imp.axis_of(*x, axis)?;
        let known = imp.known_shape(*x).and_then(|shape| shape.0[axis].known());
        if let Some(n) = known {
            return Ok(Value::Int(n as i64));
        }
        let size = imp.dim(*x, axis as i64)?;
        imp.squeeze(size, &[0]).map(Value::Tensor)
    };
    match axis {
        Some(axis) => of_axis(axis.int()?),
        None => (0..rank as i64)
            .map(of_axis)
            .collect::<Result<_>>()
            .map(Value::List),
    }
}

/// A function of one tensor by its name.
///
/// # Errors
/// `Unsupported` where it is unknown.
pub fn unary(imp: &mut Import, name: &str, value: &Value) -> Result<ValueId> {
    let x = imp.number_or_tensor(value)?;
    let keeps = match name {
        "abs" => Some(UnaryKind::Abs),
        "neg" => Some(UnaryKind::Neg),
        "sign" => Some(UnaryKind::Sign),
        "floor" => Some(UnaryKind::Floor),
        "ceil" => Some(UnaryKind::Ceil),
        "round" => Some(UnaryKind::Round),
        _ => None,
    };
    if let Some(kind) = keeps {
        let rounds = matches!(kind, UnaryKind::Floor | UnaryKind::Ceil | UnaryKind::Round);
        // Integers are whole already.
        return if rounds && imp.counts(x) {
            Ok(x)
        } else {
            imp.unary(kind, x)
        };
    }
    match name {
        "square" => return imp.mul(x, x),
        "int" | "torch.long" => return imp.cast(x, DType::I64),
        "torch.float" => return imp.cast(x, DType::F32),
        "torch.bool" => return imp.cast(x, DType::Bool),
        "trunc" if imp.counts(x) => return Ok(x),
        "logical_not" => {
            let x = imp.cast(x, DType::Bool)?;
            return imp.unary(UnaryKind::Not, x);
        }
        "bitwise_not" => {
            let bool = imp.dtype(x) == Some(DType::Bool);
            let kind = if bool {
                UnaryKind::Not
            } else {
                UnaryKind::BitwiseNot
            };
            return imp.unary(kind, x);
        }
        _ => (),
    }
    let x = imp.as_floats(x)?;
    let kind = match name {
        "acos" => UnaryKind::Acos,
        "acosh" => UnaryKind::Acosh,
        "asin" => UnaryKind::Asin,
        "asinh" => UnaryKind::Asinh,
        "atan" => UnaryKind::Atan,
        "atanh" => UnaryKind::Atanh,
        "cos" => UnaryKind::Cos,
        "cosh" => UnaryKind::Cosh,
        "erf" => UnaryKind::Erf,
        "exp" => UnaryKind::Exp,
        "log" => UnaryKind::Log,
        "reciprocal" => UnaryKind::Reciprocal,
        "sin" => UnaryKind::Sin,
        "sinh" => UnaryKind::Sinh,
        "sqrt" => UnaryKind::Sqrt,
        "tan" => UnaryKind::Tan,
        "tanh" => UnaryKind::Tanh,
        "isnan" => UnaryKind::IsNaN,
        "rsqrt" => {
            let root = imp.unary(UnaryKind::Sqrt, x)?;
            return imp.unary(UnaryKind::Reciprocal, root);
        }
        "trunc" => {
            let (up, down) = (
                imp.unary(UnaryKind::Ceil, x)?,
                imp.unary(UnaryKind::Floor, x)?,
            );
            let zero = imp.number(0.0, x)?;
            let negative = imp.binary(BinaryKind::Less, x, zero)?;
            return imp.choose(negative, up, down);
        }
        "log2" => return logarithm(imp, x, 2.0),
        "log10" => return logarithm(imp, x, 10.0),
        "expm1" => return expm1(imp, x),
        "log1p" => return log1p(imp, x),
        _ => {
            return Err(unsupported(format!(
                "the function `{name}` of an expression"
            )));
        }
    };
    imp.unary(kind, x)
}

fn logarithm(imp: &mut Import, x: ValueId, base: f64) -> Result<ValueId> {
    let log = imp.unary(UnaryKind::Log, x)?;
    let factor = imp.number(base.ln().recip(), x)?;
    imp.mul(log, factor)
}

/// `tanh(x / 2) * (exp(x) + 1)`, which is exact for small numbers, too.
fn expm1(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    let (half, one) = (imp.number(0.5, x)?, imp.number(1.0, x)?);
    let exp = imp.unary(UnaryKind::Exp, x)?;
    let sum = imp.add(exp, one)?;
    let half = imp.mul(x, half)?;
    let tanh = imp.unary(UnaryKind::Tanh, half)?;
    imp.mul(tanh, sum)
}

/// `2 * atanh(x / (x + 2))` where `x` is small.
fn log1p(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    let (one, two, small) = (
        imp.number(1.0, x)?,
        imp.number(2.0, x)?,
        imp.number(0.5, x)?,
    );
    let sum = imp.add(x, one)?;
    let log = imp.unary(UnaryKind::Log, sum)?;
    let sum = imp.add(x, two)?;
    let part = imp.div(x, sum)?;
    let part = imp.unary(UnaryKind::Atanh, part)?;
    let exact = imp.mul(part, two)?;
    let size = imp.unary(UnaryKind::Abs, x)?;
    let near = imp.binary(BinaryKind::Less, size, small)?;
    imp.choose(near, exact, log)
}

/// A function of two values by its name.
///
/// # Errors
/// `Unsupported` where it is unknown.
pub fn binary(imp: &mut Import, name: &str, a: &Value, b: &Value) -> Result<ValueId> {
    let kind = match name {
        "div" | "true_divide" => {
            let both = imp.alike_floats(&[a, b])?;
            return imp.div(both[0], both[1]);
        }
        "floor_divide" => return floor_divide(imp, a, b),
        "remainder" => return remainder(imp, a, b),
        // A shift to the right rounds down, that of negative numbers, too.
        "lshift" => return binary(imp, "mul", a, &power_of_two(b)?),
        "rshift" => return binary(imp, "floor_divide", a, &power_of_two(b)?),
        "and" | "or" | "xor" => {
            let both = imp.alike(&[a, b])?;
            let bool = imp.dtype(both[0]) == Some(DType::Bool);
            let kind = match (name, bool) {
                ("and", true) => BinaryKind::And,
                ("or", true) => BinaryKind::Or,
                ("xor", true) => BinaryKind::Xor,
                ("and", _) => BinaryKind::BitwiseAnd,
                ("or", _) => BinaryKind::BitwiseOr,
                _ => BinaryKind::BitwiseXor,
            };
            return imp.binary(kind, both[0], both[1]);
        }
        "logical_and" | "logical_or" | "logical_xor" => {
            let (a, b) = (imp.in_type(a, DType::Bool)?, imp.in_type(b, DType::Bool)?);
            let kind = match name {
                "logical_and" => BinaryKind::And,
                "logical_or" => BinaryKind::Or,
                _ => BinaryKind::Xor,
            };
            return imp.binary(kind, a, b);
        }
        "ne" => {
            let equal = binary(imp, "eq", a, b)?;
            return imp.unary(UnaryKind::Not, equal);
        }
        "add" => BinaryKind::Add,
        "sub" => BinaryKind::Sub,
        "mul" => BinaryKind::Mul,
        "pow" => BinaryKind::Pow,
        "fmod" => BinaryKind::Fmod,
        "max" | "maximum" => BinaryKind::Max,
        "min" | "minimum" => BinaryKind::Min,
        "eq" => BinaryKind::Equal,
        "lt" => BinaryKind::Less,
        "le" => BinaryKind::LessOrEqual,
        "gt" => BinaryKind::Greater,
        "ge" => BinaryKind::GreaterOrEqual,
        _ => {
            return Err(unsupported(format!(
                "the function `{name}` of an expression"
            )));
        }
    };
    let both = imp.alike(&[a, b])?;
    imp.binary(kind, both[0], both[1])
}

fn power_of_two(exponent: &Value) -> Result<Value> {
    let power = u32::try_from(exponent.int()?).ok();
    let power = power.and_then(|n| 2i64.checked_pow(n));
    power
        .map(Value::Int)
        .ok_or_else(|| exponent.no("a number of bits"))
}

fn floor_divide(imp: &mut Import, a: &Value, b: &Value) -> Result<ValueId> {
    let both = imp.alike(&[a, b])?;
    if imp.counts(both[0]) {
        let rest = imp.binary(BinaryKind::Mod, both[0], both[1])?;
        let whole = imp.sub(both[0], rest)?;
        return imp.div(whole, both[1]);
    }
    let quotient = imp.div(both[0], both[1])?;
    imp.unary(UnaryKind::Floor, quotient)
}

/// What is left of a division that rounds down, with the sign of `b`.
fn remainder(imp: &mut Import, a: &Value, b: &Value) -> Result<ValueId> {
    let both = imp.alike(&[a, b])?;
    if imp.counts(both[0]) {
        return imp.binary(BinaryKind::Mod, both[0], both[1]);
    }
    let whole = imp.div(both[0], both[1])?;
    let whole = imp.unary(UnaryKind::Floor, whole)?;
    let whole = imp.mul(whole, both[1])?;
    imp.sub(both[0], whole)
}
