//! QuantizedSoftmax.

use kilim_core::fixed::{divide_by_power, exp_of_negative};
use kilim_core::ops::QuantizedSoftmax;

use super::super::Kernels;
use super::range;
use crate::lower::{Lowering, Lowers, Operand};
use crate::params::Params;

/// Bits before the point of a scaled difference, and of a sum of exponentials.
const DIFFERENCE_BITS: u32 = 5;
const SUM_BITS: u32 = 12;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<QuantizedSoftmax>(softmax);
}

fn softmax(op: &QuantizedSoftmax, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let length = y.shape.last().copied().unwrap_or(1).max(1);
    let exponential = |d: i32| match -d >= op.smallest {
        true => exp_of_negative::<32>(op.factor.apply(-d), DIFFERENCE_BITS),
        false => 0,
    };
    let exponentials: Vec<i32> = (0..256).map(exponential).collect();
    let addends = exponentials.iter().map(|&e| divide_by_power(e, SUM_BITS));
    let words = exponentials.iter().copied().chain(addends);
    let table = words.map(|v| v as u32).collect();
    let operands = [Operand::Input(0), l.table(table), Operand::Output(0)];
    let rows = y.elements() / length;
    let low = range(y.dtype)?[0];
    let params = Params::new().u(rows).u(length).i(low.into());
    l.linear("quantized_softmax", &[], &operands, params, rows);
    Ok(())
}
