//! Tensors that are made of few numbers: Trilu, ConstantOfShape, EyeLike.

use kilim_core::DType;
use kilim_core::backend::TensorSpec;
use kilim_core::ops::*;

use super::super::select::carrier;
use super::{ok, words_of};
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;

pub(super) fn trilu(op: &Trilu, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let [.., rows, columns] = x.shape[..] else {
        return refuse("Trilu takes matrices");
    };
    let k = ok(op.diagonal(l.node))?.clamp(i32::MIN.into(), i32::MAX.into());
    let count = x.elements();
    l.linear(
        "trilu",
        &[("T", carrier(x.dtype)?)],
        &[Operand::Input(0), Operand::Output(0)],
        Params::new()
            .u(count)
            .u(rows)
            .u(columns)
            .u(usize::from(op.upper))
            .i(k),
        count,
    );
    Ok(())
}

pub(super) fn fill(value: &kilim_core::Tensor, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let words = words_of(value)?;
    filled(l, Operand::Output(0), words, y)
}

/// Every element of `to`, a tensor like `spec`, becomes the given words.
pub(crate) fn filled(l: &mut Lowering, to: Operand, [a, b]: [u32; 2], spec: &TensorSpec) -> Lowers {
    let count = spec.elements();
    l.linear(
        "fill",
        &[("T", carrier(spec.dtype)?)],
        &[to],
        Params::new().u(a as usize).u(b as usize).u(count),
        count,
    );
    Ok(())
}

pub(super) fn eye(op: &EyeLike, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let one = match y.dtype {
        DType::F32 => [1.0f32.to_bits(), 0],
        DType::F64 => [0, (1.0f64.to_bits() >> 32) as u32],
        _ => [1, 0],
    };
    let count = y.elements();
    l.linear(
        "eye",
        &[("T", carrier(y.dtype)?)],
        &[Operand::Output(0)],
        Params::new()
            .u(one[0] as usize)
            .u(one[1] as usize)
            .u(count)
            .u(y.shape.last().copied().unwrap_or(1))
            .i(op.k),
        count,
    );
    Ok(())
}
