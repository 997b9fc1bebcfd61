//! QuantizedSoftmax.

use kilim_core::fixed::{divide_by_power, exp_of_negative};
use kilim_core::ops::QuantizedSoftmax;

use super::range;
use crate::kernels::Kernels;
use crate::lowering::{Lowering, Lowers};
use crate::shaders::quantized::softmax::{Launch, Params};
use crate::shaders::{Operand, Target};

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
    let rows = y.elements() / length;
    let launch = Launch {
        x: Operand::Input(0),
        table: l.table(table),
        y: Target::Output(0),
        params: Params {
            rows,
            length,
            low: range(y.dtype)?[0].into(),
        },
    };
    l.linear(launch, rows);
    Ok(())
}
