//! Functions of two blobs and more.

use kilim_core::Dim;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, UnaryKind};

use super::Outputs;
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;

/// The layer `BinaryOp`, of two blobs or of a blob and a number (`src/layer/binaryop.h`).
pub fn binary_op(imp: &mut Import, layer: &Layer) -> Outputs {
    let a = layer.input(0)?;
    let (a, b) = match layer.params.flag(1, false)? {
        true => (a, imp.float(layer.params.float(2, 0.0)?)?),
        false => expanded(imp, a, layer.input(1)?)?,
    };
    let kind = match layer.params.int(0, 0)? {
        0 => BinaryKind::Add,
        1 => BinaryKind::Sub,
        2 => BinaryKind::Mul,
        3 => BinaryKind::Div,
        4 => BinaryKind::Max,
        5 => BinaryKind::Min,
        6 => BinaryKind::Pow,
        7 => return Ok(vec![imp.sub(b, a)?]),
        8 => return Ok(vec![imp.div(b, a)?]),
        9 => return Ok(vec![imp.binary(BinaryKind::Pow, b, a)?]),
        10 => return Ok(vec![angle(imp, a, b)?]),
        11 => return Ok(vec![angle(imp, b, a)?]),
        12 => BinaryKind::Fmod,
        13 => return Ok(vec![imp.binary(BinaryKind::Fmod, b, a)?]),
        14 => return log_add_exp(imp, a, b),
        15 => return floor_divide(imp, a, b),
        16 => return floor_divide(imp, b, a),
        17 => return remainder(imp, a, b),
        18 => return remainder(imp, b, a),
        other => return Err(unsupported(format!("function number {other} of two blobs"))),
    };
    Ok(vec![imp.binary(kind, a, b)?])
}

/// The angle of the point `(x, y)`, from -pi to pi. That of a negative x with a zero y is pi whatever the zero's sign.
fn angle(imp: &mut Import, y: ValueId, x: ValueId) -> Result<ValueId> {
    let zero = imp.float(0.0)?;
    let quotient = imp.div(y, x)?;
    let near = imp.unary(UnaryKind::Atan, quotient)?;
    let below = imp.binary(BinaryKind::Less, y, zero)?;
    let (pi, minus) = (
        imp.float(std::f32::consts::PI)?,
        imp.float(-std::f32::consts::PI)?,
    );
    let turn = imp.choose(below, minus, pi)?;
    let left = imp.binary(BinaryKind::Less, x, zero)?;
    let turned = imp.add(near, turn)?;
    let all = imp.choose(left, turned, near)?;
    // The quotient of two zeros is no number.
    let flat = imp.binary(BinaryKind::Equal, y, zero)?;
    let flat_angle = imp.choose(left, pi, zero)?;
    imp.choose(flat, flat_angle, all)
}

/// `log(exp(a) + exp(b))` without large exponentials.
fn log_add_exp(imp: &mut Import, a: ValueId, b: ValueId) -> Outputs {
    let (more, less) = (
        imp.binary(BinaryKind::Max, a, b)?,
        imp.binary(BinaryKind::Min, a, b)?,
    );
    let apart = imp.sub(less, more)?;
    let rest = imp.unary(UnaryKind::Softplus, apart)?;
    Ok(vec![imp.add(more, rest)?])
}

fn floor_divide(imp: &mut Import, a: ValueId, b: ValueId) -> Outputs {
    let quotient = imp.div(a, b)?;
    Ok(vec![imp.unary(UnaryKind::Floor, quotient)?])
}

/// What is left of the quotient that is rounded to the nearest integer, as C's `remainderf` has it.
fn remainder(imp: &mut Import, a: ValueId, b: ValueId) -> Outputs {
    let quotient = imp.div(a, b)?;
    let whole = imp.unary(UnaryKind::Round, quotient)?;
    let product = imp.mul(whole, b)?;
    Ok(vec![imp.sub(a, product)?])
}

/// Two blobs in shapes that broadcast: where one has fewer dimensions, its own are the outermost of the other. Those of a list lie
/// along the innermost where only that has its length (`BinaryOp::forward`).
fn expanded(imp: &mut Import, a: ValueId, b: ValueId) -> Result<(ValueId, ValueId)> {
    let (a_rank, b_rank) = (imp.blob_rank(a)?, imp.blob_rank(b)?);
    Ok(match a_rank.cmp(&b_rank) {
        std::cmp::Ordering::Equal => (a, b),
        std::cmp::Ordering::Less => (with_rank(imp, a, b)?, b),
        std::cmp::Ordering::Greater => (a, with_rank(imp, b, a)?),
    })
}

/// `x` with as many dimensions as `like`.
fn with_rank(imp: &mut Import, x: ValueId, like: ValueId) -> Result<ValueId> {
    let (own, all) = (imp.blob_rank(x)?, imp.blob_rank(like)?);
    let outermost = own > 1
        || along_outermost(
            &imp.length(x, 1),
            &imp.length(like, 1),
            &imp.length(like, -1),
        )?;
    let axes: Vec<i64> = match outermost {
        true => (own as i64 + 1..all as i64 + 1).collect(),
        false => (1..all as i64).collect(),
    };
    imp.unsqueeze(x, &axes)
}

/// Whether a list goes along the outermost dimension of another blob: where it is as long. One of one element goes anywhere.
fn along_outermost(list: &Dim, outermost: &Dim, innermost: &Dim) -> Result<bool> {
    if *list == Dim::Known(1) || list.same(outermost) {
        return Ok(true);
    }
    let apart = matches!((list, outermost), (Dim::Known(_), Dim::Known(_)));
    if apart || list.same(innermost) {
        return Ok(false);
    }
    match (list, innermost) {
        (Dim::Known(_), Dim::Known(_)) => Ok(true),
        _ => Err(unsupported("a list along a dimension of an open size")),
    }
}

/// The layer `Eltwise`: products, sums with factors, or maxima of any number of blobs.
pub fn eltwise(imp: &mut Import, layer: &Layer) -> Outputs {
    let factors = layer.params.floats(1)?;
    let kind = match layer.params.int(0, 0)? {
        0 => BinaryKind::Mul,
        1 => BinaryKind::Add,
        2 => BinaryKind::Max,
        other => return Err(unsupported(format!("function number {other} of blobs"))),
    };
    let factor = |i: usize| match (kind, factors.is_empty()) {
        (BinaryKind::Add, false) => factors
            .get(i)
            .copied()
            .ok_or_else(|| invalid("a factor is missing")),
        _ => Ok(1.0),
    };
    let mut y = imp.scaled(layer.input(0)?, factor(0)?)?;
    for i in 1..layer.inputs.len() {
        let x = imp.scaled(layer.input(i)?, factor(i)?)?;
        y = imp.binary(kind, y, x)?;
    }
    Ok(vec![y])
}
