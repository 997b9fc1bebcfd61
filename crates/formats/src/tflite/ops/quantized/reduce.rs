//! Softmax, sums and means.

use kilim_core::error::{Result, unsupported};
use kilim_core::fixed::Factor;
use kilim_core::ops::{QuantizedSoftmax, Reduce, ReduceKind};

use super::table::{looked_up, radius};
use super::{Importer, Op, Quanta};
use kilim_core::ops::Activation;

/// Bits before the point of a scaled difference.
const INTEGER: u32 = 5;

/// The output's scale is 1/256, and its smallest byte stands for zero.
pub fn softmax(imp: &mut Importer, op: &Op) -> Result<()> {
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    if x.dtype != y.dtype {
        return Err(unsupported("a softmax to another type than its input's"));
    }
    let beta = f64::from(op.float(0)?) * f64::from(x.scale) * f64::from(1 << (31 - INTEGER));
    let factor = Factor::new(beta.min(f64::from(i32::MAX)))?;
    let operator = QuantizedSoftmax {
        factor,
        smallest: -radius(INTEGER, factor),
    };
    let data = imp.input(op, 0)?;
    imp.emit(op, operator, &[Some(data)])
}

fn sums(imp: &mut Importer, op: &Op, count: f64) -> Result<()> {
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    let factor = Factor::new(f64::from(x.scale) / f64::from(y.scale) / count)?;
    let data = imp.input(op, 0)?;
    let numbers = looked_up(imp, op, data, &x, |v| v - x.zero_point)?;
    let axes = imp.as_vector(op, 1)?;
    let reduce = Reduce {
        kind: ReduceKind::Sum,
        keep_dims: op.flag(0)?,
        noop_with_empty_axes: true,
    };
    let sums = imp.step(op, reduce, &[Some(numbers), Some(axes)]);
    let requantize = y.requantize(vec![factor], Activation::None)?;
    imp.emit(op, requantize, &[Some(sums)])
}

pub fn sum(imp: &mut Importer, op: &Op) -> Result<()> {
    sums(imp, op, 1.0)
}

pub fn mean(imp: &mut Importer, op: &Op) -> Result<()> {
    let info = imp.info(op, 0)?;
    let axes = imp.constant_ints(op, 1)?;
    let axes = kilim_core::ops::normalize_axes(&axes, info.shape.len())?;
    if axes.iter().any(|&a| info.dynamic[a]) {
        return Err(unsupported(
            "a mean over a dimension known only at run time",
        ));
    }
    let count: usize = axes.iter().map(|&a| info.shape[a]).product();
    sums(imp, op, count.max(1) as f64)
}
