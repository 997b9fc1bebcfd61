//! QLinearBinary and QuantizedBinary.

use kilim_core::ops::{
    Affine, BinaryKind, Combination, QLinearBinary, QuantizedBinary, Requantize,
};

use super::is_byte;
use crate::device::storage::is_signed;
use crate::kernels::Kernels;
use crate::lowering::walk::{both, broadcast_steps, collapse};
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::quantized::binary::{Case, FixedOp, Launch, Params, RealOp};
use crate::shaders::{Operand, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<QLinearBinary>(real);
    kernels.add::<QuantizedBinary>(fixed);
}

/// The number of each byte of input `i`.
fn numbers(l: &Lowering, i: usize) -> Lowers<impl Iterator<Item = i32>> {
    let dtype = l.input(i)?.dtype;
    if !is_byte(dtype) {
        return refuse(format!("input {i} is {dtype}; the GPU kernel takes 8 bits"));
    }
    let signed = is_signed(dtype);
    Ok((0..=u8::MAX).map(move |b| if signed { i32::from(b as i8) } else { b.into() }))
}

fn real(op: &QLinearBinary, l: &mut Lowering) -> Lowers {
    let kind = match op.kind {
        BinaryKind::Add => RealOp::Add,
        BinaryKind::Sub => RealOp::Sub,
        BinaryKind::Mul => RealOp::Mul,
        BinaryKind::Max => RealOp::Max,
        BinaryKind::Min => RealOp::Min,
        other => return refuse(format!("{other:?} of quantised numbers")),
    };
    let mut table = Vec::with_capacity(512);
    for (i, (Affine { scale, zero }, offset)) in
        op.operands.into_iter().zip([0.0, op.offset]).enumerate()
    {
        let real = |n: i32| (n as f32 - zero) * scale;
        let words = numbers(l, i)?.map(real).map(|r| match i {
            0 => r.to_bits(),
            _ => (r + offset).to_bits(),
        });
        table.extend(words);
    }
    let Affine { scale, zero } = op.result;
    let [low, high] = op.range.map(|r| (r - zero) as i32);
    let result = Outcome {
        zero: zero as i32,
        range: [low, high],
        scale: scale.to_bits(),
        shift: 0,
    };
    combine(Case::Real { op: kind }, table, result, l)
}

fn fixed(op: &QuantizedBinary, l: &mut Lowering) -> Lowers {
    let (kind, factors) = match op.combination {
        Combination::Sum {
            left_shift,
            factors,
        } => (FixedOp::Add, Some((left_shift, factors))),
        Combination::Difference {
            left_shift,
            factors,
        } => (FixedOp::Sub, Some((left_shift, factors))),
        Combination::Product => (FixedOp::Mul, None),
    };
    let mut table = Vec::with_capacity(512);
    for (i, zero) in op.zero_points.into_iter().enumerate() {
        let scaled = |n: i32| match factors {
            Some((shift, factors)) => factors[i].apply(n.wrapping_shl(shift)),
            None => n,
        };
        table.extend(numbers(l, i)?.map(|n| scaled(n - zero) as u32));
    }
    let Requantize {
        factors,
        zero_point,
        range,
        ..
    } = &op.result;
    let [factor] = factors[..] else {
        return refuse("two tensors are combined with one factor");
    };
    let result = Outcome {
        zero: *zero_point,
        range: range.map(|r| r.saturating_sub(*zero_point)),
        scale: factor.multiplier as u32,
        shift: factor.shift,
    };
    combine(Case::Fixed { op: kind }, table, result, l)
}

/// How results become bytes.
struct Outcome {
    zero: i32,
    /// Limits of results without the zero point.
    range: [i32; 2],
    /// The bits of the scale, or the multiplier.
    scale: u32,
    shift: i32,
}

fn combine(case: Case, table: Vec<u32>, result: Outcome, l: &mut Lowering) -> Lowers {
    let (a, b, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let steps_a = broadcast_steps(&a.shape, &y.shape)?;
    let steps_b = broadcast_steps(&b.shape, &y.shape)?;
    let (dims, walks) = collapse(&y.shape, &[steps_a, steps_b])?;
    let [low, high] = result.range.map(i64::from);
    let launch = Launch {
        case,
        a: Operand::Input(0),
        b: Operand::Input(1),
        table: l.table(table),
        y: Target::Output(0),
        params: Params {
            walk: both(&dims, &walks[0], &walks[1]),
            count: y.elements(),
            zero: result.zero.into(),
            low,
            high,
            scale: result.scale as usize,
            shift: result.shift.into(),
        },
    };
    l.linear(launch, y.elements());
    Ok(())
}
