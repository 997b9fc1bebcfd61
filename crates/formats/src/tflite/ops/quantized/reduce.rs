//! Softmax, sums and means.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::fixed::Factor;
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Activation, AffineQuantize, Binary, BinaryKind, Cast, QuantizedSoftmax, Reduce, ReduceKind,
    normalize_axes,
};
use kilim_core::tensor::{Tensor, element_count};

use super::table::{looked_up, radius};
use super::{Import, Op, Quanta};

/// Bits before the point of a scaled difference.
const INTEGER: u32 = 5;

/// The output's scale is 1/256, and its smallest byte stands for zero.
pub fn softmax(imp: &mut Import, op: &Op) -> Result<()> {
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

/// The sums of an `int32` function of the data.
fn sums(imp: &mut Import, op: &Op, x: &Quanta, number: impl Fn(i32) -> i32) -> Result<ValueId> {
    let data = imp.input(op, 0)?;
    let numbers = looked_up(imp, data, x, number)?;
    let axes = imp.as_vector(op, 1)?;
    let reduce = Reduce {
        kind: ReduceKind::Sum,
        keep_dims: op.flag(0)?,
        noop_with_empty_axes: true,
    };
    imp.step(reduce, &[Some(numbers), Some(axes)])
}

/// How many numbers each result is made of.
fn count(imp: &Import, op: &Op) -> Result<u32> {
    let info = imp.info(op, 0)?;
    let axes = imp.constant_ints(op, 1)?;
    let axes = normalize_axes(&axes, info.shape.len())?;
    if axes.iter().any(|&a| info.dynamic[a]) {
        return Err(unsupported("a dimension known only at run time"));
    }
    let lengths: Vec<usize> = axes.iter().map(|&a| info.shape[a]).collect();
    u32::try_from(element_count(&lengths)?).map_err(|_| unsupported("a result of so many numbers"))
}

/// The sum in `float32`, as TFLite's optimised kernel computes it: the reference kernel leaves the factor
/// out.
pub fn sum(imp: &mut Import, op: &Op) -> Result<()> {
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    let scale = x.scale / y.scale;
    let bias = -(x.zero_point as f32) * scale * count(imp, op)? as f32;
    let sums = sums(imp, op, &x, |v| v)?;
    let mut value = imp.step(Cast::new(DType::F32), &[Some(sums)])?;
    for (kind, number) in [(BinaryKind::Mul, scale), (BinaryKind::Add, bias)] {
        let number = Tensor::scalar(number)?;
        let number = imp.node_constant(kind.name(), number);
        value = imp.step(Binary::new(kind), &[Some(value), Some(number)])?;
    }
    let quantize = AffineQuantize {
        scale: 1.0,
        zero_point: y.zero_point,
        output: y.dtype,
    };
    imp.emit(op, quantize, &[Some(value)])
}

pub fn mean(imp: &mut Import, op: &Op) -> Result<()> {
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    let factor = Factor::new(f64::from(x.scale) / f64::from(y.scale))?.over(count(imp, op)?);
    let sums = sums(imp, op, &x, |v| v - x.zero_point)?;
    let requantize = y.requantize(vec![factor], Activation::None)?;
    imp.emit(op, requantize, &[Some(sums)])
}
