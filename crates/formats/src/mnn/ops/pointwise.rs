//! Functions of each number.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Binary, BinaryKind, UnaryKind};

use super::{Outputs, along_channels};
use crate::mnn::blob;
use crate::mnn::import::Import;
use crate::mnn::op::Op;
use crate::mnn::weights::{floats, left_out};

/// The tables of parameters.
const BINARY: u8 = 6;
const CAST: u8 = 8;
const ELTWISE: u8 = 14;
const PRELU: u8 = 32;
const RELU: u8 = 51;
const RELU6: u8 = 52;
const SELU: u8 = 59;
const UNARY: u8 = 70;
const ELU: u8 = 81;

/// One function of the first input.
pub fn of(imp: &mut Import, op: &Op, kind: UnaryKind) -> Outputs {
    let x = op.input(0)?;
    Ok(vec![imp.unary(kind, x)?])
}

/// What is passed on as it is.
pub fn same(_: &mut Import, op: &Op) -> Outputs {
    op.all()
}

/// The operator ReLU.
pub fn relu(imp: &mut Import, op: &Op) -> Outputs {
    match op.params(RELU)?.float(0, 0.0)? {
        0.0 => of(imp, op, UnaryKind::Relu),
        alpha => of(imp, op, UnaryKind::LeakyRelu { alpha }),
    }
}

/// The operator ReLU6, which clips to any bounds.
pub fn clip(imp: &mut Import, op: &Op) -> Outputs {
    let p = op.params(RELU6)?;
    let (min, max) = (p.float(0, 0.0)?.into(), p.float(1, 6.0)?.into());
    of(imp, op, UnaryKind::Clip { min, max })
}

/// The operator PReLU: a slope for each channel, or one for all.
pub fn prelu(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(PRELU)?);
    let count = p.size(0, 0)?;
    let slope = floats(imp, &p, 1, "slope", count)?;
    let slope = slope.ok_or_else(left_out)?;
    let slope = match count {
        1 => slope,
        _ => along_channels(imp, op, slope, x)?,
    };
    Ok(vec![imp.binary(BinaryKind::PRelu, x, slope)?])
}

/// The operator ELU.
pub fn elu(imp: &mut Import, op: &Op) -> Outputs {
    let alpha = op.params(ELU)?.float(0, 0.0)?;
    of(imp, op, UnaryKind::Elu { alpha })
}

/// The operator Selu.
pub fn selu(imp: &mut Import, op: &Op) -> Outputs {
    let p = op.params(SELU)?;
    let (gamma, alpha) = (p.float(0, 0.0)?, p.float(1, 0.0)?);
    of(imp, op, UnaryKind::Selu { alpha, gamma })
}

/// The operator Threshold: 1 above a number, 0 elsewhere.
pub fn threshold(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let least = imp.float(op.params(ELU)?.float(0, 0.0)?)?;
    let above = imp.binary(BinaryKind::Greater, x, least)?;
    Ok(vec![imp.cast(above, DType::F32)?])
}

/// The operator Cast.
pub fn cast(imp: &mut Import, op: &Op) -> Outputs {
    const BOOL: i32 = 10;
    let (x, to) = (op.input(0)?, op.params(CAST)?.int(1, 0)?);
    if to == BOOL {
        let truths = imp.truths(x)?;
        return Ok(vec![imp.as_ints(truths)?]);
    }
    Ok(vec![imp.cast(x, blob::dtype(to)?)?])
}

/// The operator CastLike.
pub fn cast_like(imp: &mut Import, op: &Op) -> Outputs {
    let (x, like) = (op.input(0)?, op.input(1)?);
    Ok(vec![imp.cast_like(x, like)?])
}

/// The operator UnaryOp, by the numbers of `UnaryOpOperation`.
pub fn unary(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let number = op.params(UNARY)?.int(0, 0)?;
    if let Some(y) = imp.numbered(x, number.into())? {
        return Ok(vec![y]);
    }
    let kind = match number {
        16 => {
            let one = imp.number(1.0, x)?;
            let more = imp.add(x, one)?;
            return Ok(vec![imp.unary(UnaryKind::Log, more)?]);
        }
        17 => UnaryKind::Softplus,
        18 => UnaryKind::Acosh,
        19 => UnaryKind::Sinh,
        20 => UnaryKind::Asinh,
        21 => UnaryKind::Atanh,
        22 => UnaryKind::Sign,
        23 => return Ok(vec![rounded(imp, x)?]),
        24 => UnaryKind::Cosh,
        25 => UnaryKind::Erf,
        26 => {
            let (one, erf) = (imp.number(1.0, x)?, imp.unary(UnaryKind::Erf, x)?);
            return Ok(vec![imp.sub(one, erf)?]);
        }
        // The exponential less one; for numbers above 0, too.
        28 => {
            let (one, exp) = (imp.number(1.0, x)?, imp.unary(UnaryKind::Exp, x)?);
            return Ok(vec![imp.sub(exp, one)?]);
        }
        29 => UnaryKind::Sigmoid,
        30 => UnaryKind::Tanh,
        31 => UnaryKind::HardSwish,
        32 => UnaryKind::Gelu { tanh: true },
        33 => UnaryKind::Gelu { tanh: false },
        34 => UnaryKind::Swish { alpha: 1.0 },
        other => return Err(unsupported(format!("function number {other}"))),
    };
    Ok(vec![imp.unary(kind, x)?])
}

/// The nearest integer, of two the one that is farther from 0.
fn rounded(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    let half = imp.number(0.5, x)?;
    let (size, sign) = (
        imp.unary(UnaryKind::Abs, x)?,
        imp.unary(UnaryKind::Sign, x)?,
    );
    let size = imp.add(size, half)?;
    let size = imp.unary(UnaryKind::Floor, size)?;
    imp.mul(size, sign)
}

/// The operator BinaryOp, by the numbers of `BinaryOpOperation`.
pub fn binary(imp: &mut Import, op: &Op) -> Outputs {
    let p = op.params(BINARY)?;
    let (a, b) = (op.input(0)?, op.input(1)?);
    // What comes out lies as the input with more dimensions does.
    if imp.rank(b)? > imp.rank(a)? {
        imp.gives(op.layouts[1]);
    }
    let integers = imp.dtype(a) == Some(DType::I32);
    let y = match p.int(0, 0)? {
        0 => activated(imp, BinaryKind::Add, a, b, p.int(2, 0)?)?,
        1 => activated(imp, BinaryKind::Sub, a, b, p.int(2, 0)?)?,
        2 => activated(imp, BinaryKind::Mul, a, b, p.int(2, 0)?)?,
        3 | 7 => imp.div(a, b)?,
        4 | 9 => number_or(imp, BinaryKind::Max, a, b)?,
        5 | 8 => number_or(imp, BinaryKind::Min, a, b)?,
        6 => imp.binary(BinaryKind::Pow, a, b)?,
        10 => compared(imp, BinaryKind::Greater, a, b)?,
        11 => compared(imp, BinaryKind::GreaterOrEqual, a, b)?,
        12 => compared(imp, BinaryKind::Less, a, b)?,
        13 if integers => {
            // Rounded down: the quotient less what is left over.
            let rest = imp.binary(BinaryKind::Mod, a, b)?;
            let whole = imp.sub(a, rest)?;
            imp.div(whole, b)?
        }
        13 => {
            let quotient = imp.div(a, b)?;
            imp.unary(UnaryKind::Floor, quotient)?
        }
        14 => {
            let difference = imp.sub(a, b)?;
            imp.mul(difference, difference)?
        }
        15 => compared(imp, BinaryKind::Equal, a, b)?,
        16 => compared(imp, BinaryKind::LessOrEqual, a, b)?,
        // Integers are divided towards 0 first, which leaves what C's `%` does.
        17 if integers => imp.binary(BinaryKind::Fmod, a, b)?,
        17 => {
            let quotient = imp.div(a, b)?;
            let whole = imp.unary(UnaryKind::Floor, quotient)?;
            let whole = imp.mul(whole, b)?;
            imp.sub(a, whole)?
        }
        19 if integers => number_or(imp, BinaryKind::Mod, a, b)?,
        19 => imp.binary(BinaryKind::Fmod, a, b)?,
        21 => logical(imp, BinaryKind::Or, a, b)?,
        22 => {
            let equal = imp.binary(BinaryKind::Equal, a, b)?;
            let differ = imp.unary(UnaryKind::Not, equal)?;
            imp.as_ints(differ)?
        }
        23 => imp.binary(BinaryKind::BitwiseAnd, a, b)?,
        24 => imp.binary(BinaryKind::BitwiseOr, a, b)?,
        25 | 26 => imp.binary(BinaryKind::BitwiseXor, a, b)?,
        29 => {
            let gate = imp.unary(UnaryKind::Swish { alpha: 1.0 }, b)?;
            imp.mul(a, gate)?
        }
        other => {
            return Err(unsupported(format!(
                "function number {other} of two tensors"
            )));
        }
    };
    Ok(vec![y])
}

/// A function with an activation behind it: 1 is ReLU.
fn activated(
    imp: &mut Import,
    kind: BinaryKind,
    a: ValueId,
    b: ValueId,
    activation: i32,
) -> Result<ValueId> {
    match activation {
        0 => number_or(imp, kind, a, b),
        1 => {
            let activation = Activation::Relu;
            imp.op(Binary { kind, activation }, &[a, b])
        }
        other => Err(unsupported(format!("activation number {other}"))),
    }
}

/// A function of two tensors, which is a constant where both are known integers.
fn number_or(imp: &mut Import, kind: BinaryKind, a: ValueId, b: ValueId) -> Result<ValueId> {
    match imp.computed(kind, a, b)? {
        Some(number) => Ok(number),
        None => imp.binary(kind, a, b),
    }
}

fn compared(imp: &mut Import, kind: BinaryKind, a: ValueId, b: ValueId) -> Result<ValueId> {
    let truths = imp.binary(kind, a, b)?;
    imp.as_ints(truths)
}

fn logical(imp: &mut Import, kind: BinaryKind, a: ValueId, b: ValueId) -> Result<ValueId> {
    let (a, b) = (imp.truths(a)?, imp.truths(b)?);
    compared(imp, kind, a, b)
}

/// The operator Eltwise: one function of all inputs, of sums with factors.
pub fn eltwise(imp: &mut Import, op: &Op) -> Outputs {
    let p = op.params(ELTWISE)?;
    let kind = match p.choice(0)? {
        0 => BinaryKind::Mul,
        1 => BinaryKind::Add,
        2 => BinaryKind::Max,
        3 => BinaryKind::Sub,
        other => return Err(unsupported(format!("function number {other} of tensors"))),
    };
    let factors = p.floats(1)?;
    let mut y: Option<ValueId> = None;
    for (i, x) in op.all()?.into_iter().enumerate() {
        let factor = factors.get(i).copied().unwrap_or(1.0);
        let x = match kind == BinaryKind::Add && factor != 1.0 {
            true => {
                let factor = imp.number(factor.into(), x)?;
                imp.mul(x, factor)?
            }
            false => x,
        };
        y = Some(match y {
            Some(y) => imp.binary(kind, y, x)?,
            None => x,
        });
    }
    Ok(y.into_iter().collect())
}
