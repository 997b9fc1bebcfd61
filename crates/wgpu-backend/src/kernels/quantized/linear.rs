//! QuantizeLinear, DequantizeLinear, AffineQuantize.

use kilim_core::DType;
use kilim_core::ops::{AffineQuantize, DequantizeLinear, Granularity, QuantizeLinear};

use super::range;
use crate::device::storage::{Scalar, scalar};
use crate::kernels::Kernels;
use crate::kernels::elementwise::cast;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::quantized::linear::{Case, DequantizeT, Launch, Params, QuantizeOp};
use crate::shaders::{Operand, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<QuantizeLinear>(quantize);
    kernels.add::<DequantizeLinear>(dequantize);
    kernels.add::<AffineQuantize>(affine);
}

/// The parameters of `count` elements with one scale and one zero point for all.
pub(super) fn one_for_all(count: usize) -> Params {
    Params {
        count,
        length: 1,
        inner: 1,
        block: 1,
        ..Params::default()
    }
}

/// The parameters that say which scale and zero point an element has.
fn places(l: &Lowering, axis: i64, block: usize) -> Lowers<Params> {
    let (x, scale) = (l.input(0)?, l.input(1)?);
    let all = Params {
        zero_step: l.optional(2).is_some_and(|z| z.elements() > 1).into(),
        ..one_for_all(x.elements())
    };
    Ok(
        match ok(Granularity::new(&x.shape, &scale.shape, axis, block))? {
            Granularity::Tensor => all,
            Granularity::Axis { channels, inner } => Params {
                length: channels,
                inner,
                block_step: 1,
                ..all
            },
            Granularity::Block {
                block,
                length,
                inner,
            } => Params {
                length,
                inner,
                block,
                outer_step: length.div_ceil(block).saturating_mul(inner),
                block_step: inner,
                inner_step: 1,
                ..all
            },
        },
    )
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
    let [low, high] = range(y.dtype)?.map(i64::from);
    let launch = Launch {
        case: Case::Quantize {
            op: QuantizeOp::QuantizeLinear,
        },
        x: Operand::Input(0),
        scales: Operand::Input(1),
        zeros: zeros(l),
        y: Target::Output(0),
        params: Params {
            low,
            high,
            ..places(l, op.axis, op.block)?
        },
    };
    l.linear(launch, y.elements());
    Ok(())
}

fn affine(op: &AffineQuantize, l: &mut Lowering) -> Lowers {
    l.want(0, DType::F32)?;
    let y = l.output(0)?;
    let [low, high] = range(y.dtype)?.map(i64::from);
    let launch = Launch {
        case: Case::Quantize {
            op: QuantizeOp::AffineQuantize,
        },
        x: Operand::Input(0),
        scales: l.table(vec![op.scale.to_bits()]),
        zeros: l.table(vec![op.zero_point as u32]),
        y: Target::Output(0),
        params: Params {
            low,
            high,
            ..one_for_all(y.elements())
        },
    };
    l.linear(launch, y.elements());
    Ok(())
}

fn dequantize(op: &DequantizeLinear, l: &mut Lowering) -> Lowers {
    l.want(1, DType::F32)?;
    let (x, y) = (l.input(0)?, l.output(0)?);
    let params = places(l, op.axis, op.block)?;
    let (t, data, zeros) = if x.dtype.is_narrow_float() {
        let data = cast::widened(x.dtype, Operand::Input(0), y.elements(), l)?;
        let zeros = match l.optional(2) {
            Some(z) => cast::widened(z.dtype, Operand::Input(2), z.elements(), l)?,
            None => l.table(vec![0]),
        };
        (DequantizeT::F32, data, zeros)
    } else {
        match scalar(x.dtype) {
            Some(Scalar { spare, .. }) if spare >= 16 => {
                (DequantizeT::I32, Operand::Input(0), zeros(l))
            }
            _ => return refuse(format!("{} times a scale is rounded in float64", x.dtype)),
        }
    };
    let launch = Launch {
        case: Case::Dequantize { t },
        x: data,
        scales: Operand::Input(1),
        zeros,
        y: Target::Output(0),
        params,
    };
    l.linear(launch, y.elements());
    Ok(())
}
