//! Functions of two tensors and more.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, UnaryKind};
use kilim_core::tensor::element_count;

use super::Outputs;
use crate::tengine::import::Import;
use crate::tengine::node::Node;

/// `kind` of all, broadcast, from the first to the last.
pub fn of_all(imp: &mut Import, node: &Node, kind: BinaryKind) -> Outputs {
    let mut y = node.input(0)?;
    for &x in &node.inputs[1..] {
        y = imp.binary(kind, y, x)?;
    }
    Ok(vec![y])
}

/// `(a - b)^2`.
pub fn squared_difference(imp: &mut Import, node: &Node) -> Outputs {
    let y = of_all(imp, node, BinaryKind::Sub)?[0];
    Ok(vec![imp.mul(y, y)?])
}

/// The operator `Eltwise`, a function by its number (`device/cpu/op/eltwise/eltwise_ref.c`).
pub fn eltwise(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let kind = match params.int(0)? {
        0 | 1 => BinaryKind::Mul,
        2 => BinaryKind::Add,
        4 | 5 => BinaryKind::Sub,
        6 => BinaryKind::Max,
        8 => BinaryKind::Min,
        10 => BinaryKind::Div,
        16 => BinaryKind::Pow,
        7 => {
            let root = imp.unary(UnaryKind::Sqrt, x)?;
            return Ok(vec![imp.unary(UnaryKind::Reciprocal, root)?]);
        }
        11 => return Ok(vec![imp.unary(UnaryKind::Log, x)?]),
        12 => return Ok(vec![imp.unary(UnaryKind::Exp, x)?]),
        13 => return Ok(vec![imp.unary(UnaryKind::Sqrt, x)?]),
        14 => return Ok(vec![imp.unary(UnaryKind::Floor, x)?]),
        15 => return Ok(vec![imp.mul(x, x)?]),
        17 => {
            let scaled = imp.scaled(x, params.float(4)?)?;
            let shifted = imp.shifted(scaled, params.float(2)?)?;
            let power = imp.float(params.float(3)?)?;
            return Ok(vec![imp.binary(BinaryKind::Pow, shifted, power)?]);
        }
        other => return Err(unsupported(format!("function number {other}"))),
    };
    let (a, b) = matched(imp, x, node.input(1)?)?;
    Ok(vec![imp.binary(kind, a, b)?])
}

/// Two tensors in shapes that broadcast: the smaller has one number, as many as the other has channels, or as many as it has pixels.
fn matched(imp: &mut Import, a: ValueId, b: ValueId) -> Result<(ValueId, ValueId)> {
    let count = |x: ValueId| imp.shape(x).map(|dims| element_count(&dims)).transpose();
    let (a_count, b_count) = (count(a)?, count(b)?);
    match (a_count, b_count) {
        (Some(m), Some(n)) if m < n => Ok((spread(imp, a, m, b)?, b)),
        (_, Some(n)) => Ok((a, spread(imp, b, n, a)?)),
        (Some(m), None) => Ok((spread(imp, a, m, b)?, b)),
        (None, None) => Ok((a, b)),
    }
}

/// `count` numbers in a shape that broadcasts with `x`.
fn spread(imp: &mut Import, list: ValueId, count: usize, x: ValueId) -> Result<ValueId> {
    let rank = imp.rank(x)?;
    if imp.shape(list) == imp.shape(x) {
        return Ok(list);
    }
    if count == 1 {
        return imp.reshape(list, &vec![1; rank]);
    }
    let dims: Vec<Option<usize>> = (0..rank).map(|axis| imp.length(x, axis)).collect();
    let pixels = dims.get(2..).unwrap_or_default();
    let pixels = pixels
        .iter()
        .try_fold(1usize, |n, dim| n.checked_mul((*dim)?));
    let mut shape = vec![1; rank];
    if rank > 1 && dims[1] == Some(count) {
        shape[1] = count as i64;
        return imp.reshape(list, &shape);
    }
    if rank > 2 && pixels == Some(count) {
        for (to, dim) in shape.iter_mut().zip(&dims).skip(2) {
            *to = dim.unwrap_or(1) as i64;
        }
        return imp.reshape(list, &shape);
    }
    match imp.rank(list)? == rank {
        true => Ok(list),
        false => Err(unsupported("numbers beside a tensor of another size")),
    }
}
