//! Sums and the like along axes.

use kilim_core::dtype::DType;
use kilim_core::error::unsupported;
use kilim_core::ops::{Cumulative, ReduceKind, Softmax, SoftmaxKind};

use super::Outputs;
use super::arrange::AXIS;
use crate::mnn::import::Import;
use crate::mnn::op::Op;

/// The tables of parameters.
const REDUCTION: u8 = 50;
const CUM_SUM: u8 = 94;

/// The operator Softmax.
pub fn softmax(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let axis = op.params(AXIS)?.int(0, 0)?.into();
    let softmax = Softmax {
        kind: SoftmaxKind::Softmax,
        axis,
        beta: 1.0,
    };
    Ok(vec![imp.op(softmax, &[x])?])
}

/// The operator Reduction, by the numbers of `ReductionType`; without axes over all.
pub fn reduction(imp: &mut Import, op: &Op) -> Outputs {
    let (mut x, p) = (op.input(0)?, op.params(REDUCTION)?);
    let named = p.ints(1)?;
    let axes = match (named.is_empty(), op.optional(1)) {
        (true, Some(axes)) => {
            let known = imp.known(axes)?;
            known.ok_or_else(|| unsupported("axes that another operator computes"))?
        }
        (true, None) => (0..imp.rank(x)? as i64).collect(),
        (false, _) => named,
    };
    let kind = match p.choice(0)? {
        0 => ReduceKind::Sum,
        3 => ReduceKind::Mean,
        4 => ReduceKind::Max,
        5 => ReduceKind::Min,
        6 => ReduceKind::Prod,
        // Truth values are 0 and 1.
        number @ (7 | 8) => {
            let truths = imp.truths(x)?;
            x = imp.as_ints(truths)?;
            match number {
                7 => ReduceKind::Max,
                _ => ReduceKind::Min,
            }
        }
        other => return Err(unsupported(format!("reduction number {other}"))),
    };
    if kind == ReduceKind::Mean && imp.dtype(x) == Some(DType::I32) {
        return Err(unsupported("means of integers"));
    }
    Ok(vec![imp.reduce(kind, x, &axes, p.flag(3, false)?)?])
}

/// The operator CumSum, whose axis is input.
pub fn cumulative_sum(imp: &mut Import, op: &Op) -> Outputs {
    let (x, axis, p) = (op.input(0)?, op.input(1)?, op.params(CUM_SUM)?);
    let axis = imp.scalar_of(axis)?;
    let sum = Cumulative {
        product: false,
        exclusive: p.flag(0, false)?,
        reverse: p.flag(1, false)?,
    };
    Ok(vec![imp.op(sum, &[x, axis])?])
}

/// The operator CumProd.
pub fn cumulative_product(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let axis = imp.i64(op.params(AXIS)?.int(0, 0)?.into())?;
    let product = Cumulative {
        product: true,
        exclusive: false,
        reverse: false,
    };
    Ok(vec![imp.op(product, &[x, axis])?])
}
