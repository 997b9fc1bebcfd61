//! QuantizeLinear, DequantizeLinear, AffineQuantize.

use kilim_core::DType;
use kilim_core::ops::{AffineQuantize, DequantizeLinear, Granularity, QuantizeLinear};

use super::super::movement::ok;
use super::super::{Kernels, cast};
use super::range;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage::{Scalar, scalar};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<QuantizeLinear>(quantize);
    kernels.add::<DequantizeLinear>(dequantize);
    kernels.add::<AffineQuantize>(affine);
}

/// One scale and one zero point for all, as the shader wants to know.
pub(super) const FOR_ALL: [usize; 7] = [1, 1, 1, 0, 0, 0, 0];

/// Which scale and zero point an element has, as the shader wants to know.
fn places(l: &Lowering, axis: i64, block: usize) -> Lowers<Params> {
    let (x, scale) = (l.input(0)?, l.input(1)?);
    let steps = match ok(Granularity::new(&x.shape, &scale.shape, axis, block))? {
        Granularity::Tensor => [1, 1, 1, 0, 0, 0],
        Granularity::Axis { channels, inner } => [channels, inner, 1, 0, 1, 0],
        Granularity::Block {
            block,
            length,
            inner,
        } => {
            let outer = length.div_ceil(block).saturating_mul(inner);
            [length, inner, block, outer, inner, 1]
        }
    };
    let several = l.optional(2).is_some_and(|z| z.elements() > 1);
    let params = Params::new().u(x.elements());
    Ok(steps.into_iter().fold(params, Params::u).u(several.into()))
}

/// Input 2, or a zero.
fn zeros(l: &mut Lowering) -> Operand {
    match l.optional(2) {
        Some(_) => Operand::Input(2),
        None => l.table(vec![0]),
    }
}

fn quantize(op: &QuantizeLinear, l: &mut Lowering) -> Lowers {
    l.want(0, DType::F32)?;
    l.want(1, DType::F32)?;
    let y = l.output(0)?;
    let [low, high] = range(y.dtype)?;
    let params = places(l, op.axis, op.block)?.i(low.into()).i(high.into());
    let operands = [
        Operand::Input(0),
        Operand::Input(1),
        zeros(l),
        Operand::Output(0),
    ];
    let defines = [("OP", "QuantizeLinear"), ("T", "u32")];
    l.linear("linear", &defines, &operands, params, y.elements());
    Ok(())
}

fn affine(op: &AffineQuantize, l: &mut Lowering) -> Lowers {
    l.want(0, DType::F32)?;
    let y = l.output(0)?;
    let [low, high] = range(y.dtype)?;
    let params = Params::new().u(y.elements());
    let params = FOR_ALL
        .into_iter()
        .fold(params, Params::u)
        .i(low.into())
        .i(high.into());
    let operands = [
        Operand::Input(0),
        l.table(vec![op.scale.to_bits()]),
        l.table(vec![op.zero_point as u32]),
        Operand::Output(0),
    ];
    let defines = [("OP", "AffineQuantize"), ("T", "u32")];
    l.linear("linear", &defines, &operands, params, y.elements());
    Ok(())
}

fn dequantize(op: &DequantizeLinear, l: &mut Lowering) -> Lowers {
    l.want(1, DType::F32)?;
    let (x, y) = (l.input(0)?, l.output(0)?);
    let params = places(l, op.axis, op.block)?.i(0).i(0);
    let (t, data, zero) = if x.dtype.is_narrow_float() {
        let data = cast::widened(x.dtype, Operand::Input(0), y.elements(), l);
        let zero = match l.optional(2) {
            Some(z) => cast::widened(z.dtype, Operand::Input(2), z.elements(), l),
            None => l.table(vec![0]),
        };
        ("f32", data, zero)
    } else {
        match scalar(x.dtype) {
            Some(Scalar { spare, .. }) if spare >= 16 => ("i32", Operand::Input(0), zeros(l)),
            _ => return refuse(format!("{} times a scale is rounded in float64", x.dtype)),
        }
    };
    let operands = [data, Operand::Input(1), zero, Operand::Output(0)];
    let defines = [("OP", "DequantizeLinear"), ("T", t)];
    l.linear("linear", &defines, &operands, params, y.elements());
    Ok(())
}
