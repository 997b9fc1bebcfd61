//! QLinearBinary and QuantizedBinary.

use kilim_core::ops::{
    Affine, BinaryKind, Combination, QLinearBinary, QuantizedBinary, Requantize,
};

use super::super::Kernels;
use super::is_byte;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage::scalar;
use crate::walk::{broadcast_strides, collapse};

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
    let signed = scalar(dtype).is_some_and(|s| s.name == "i32");
    Ok((0..=u8::MAX).map(move |b| if signed { i32::from(b as i8) } else { b.into() }))
}

fn real(op: &QLinearBinary, l: &mut Lowering) -> Lowers {
    let name = match op.kind {
        BinaryKind::Add => "Add",
        BinaryKind::Sub => "Sub",
        BinaryKind::Mul => "Mul",
        BinaryKind::Max => "Max",
        BinaryKind::Min => "Min",
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
    combine(
        ["f32", name],
        table,
        [zero as i32, low, high],
        [scale.to_bits(), 0],
        l,
    )
}

fn fixed(op: &QuantizedBinary, l: &mut Lowering) -> Lowers {
    let (name, factors) = match op.combination {
        Combination::Sum {
            left_shift,
            factors,
        } => ("Add", Some((left_shift, factors))),
        Combination::Difference {
            left_shift,
            factors,
        } => ("Sub", Some((left_shift, factors))),
        Combination::Product => ("Mul", None),
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
    let [low, high] = range.map(|r| r.saturating_sub(*zero_point));
    let factor = [factor.multiplier as u32, factor.shift as u32];
    combine(["i32", name], table, [*zero_point, low, high], factor, l)
}

/// `result` is the zero point, and the range without it.
fn combine(
    [t, name]: [&'static str; 2],
    table: Vec<u32>,
    result: [i32; 3],
    factor: [u32; 2],
    l: &mut Lowering,
) -> Lowers {
    let (a, b, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let walk = |shape: &[usize]| -> Lowers<Vec<i64>> {
        let s = broadcast_strides(shape, &y.shape)?;
        Ok(s.into_iter().map(|s| s as i64).collect())
    };
    let (dims, walks) = collapse(&y.shape, &[walk(&a.shape)?, walk(&b.shape)?])?;
    let mut params = Params::new()
        .dims(&dims)
        .signed(&walks[0])
        .signed(&walks[1])
        .u(dims.len())
        .u(y.elements());
    for word in result {
        params = params.i(word.into());
    }
    params.words.extend(factor);
    let table = l.table(table);
    l.linear(
        "quantized_binary",
        &[("T", t), ("OP", name)],
        &[
            Operand::Input(0),
            Operand::Input(1),
            table,
            Operand::Output(0),
        ],
        params,
        y.elements(),
    );
    Ok(())
}
