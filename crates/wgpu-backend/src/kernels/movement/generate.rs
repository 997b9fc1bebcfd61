//! Tensors that are made of few numbers: Trilu, ConstantOfShape, EyeLike.

use kilim_core::DType;
use kilim_core::backend::TensorSpec;
use kilim_core::ops::{EyeLike, Trilu};

use super::words_of;
use crate::lowering::elements::carrier;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::movement::{eye as eye_shader, fill as fill_shader, trilu as trilu_shader};
use crate::shaders::{Operand, Target};

pub(super) fn trilu(op: &Trilu, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let [.., rows, columns] = x.shape[..] else {
        return refuse("Trilu takes matrices");
    };
    let k = ok(op.diagonal(l.node))?.clamp(i32::MIN.into(), i32::MAX.into());
    let count = x.elements();
    let launch = trilu_shader::Launch {
        t: carrier(x.dtype)?,
        x: Operand::Input(0),
        y: Target::Output(0),
        params: trilu_shader::Params {
            count,
            rows,
            columns,
            upper: op.upper.into(),
            k,
        },
    };
    l.linear(launch, count);
    Ok(())
}

pub(super) fn fill(value: &kilim_core::Tensor, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let value = words_of(value)?;
    filled(l, Target::Output(0), value, y)
}

/// Every element of `y`, a tensor like `spec`, becomes the words `value`.
pub(crate) fn filled(l: &mut Lowering, y: Target, value: [u32; 2], spec: &TensorSpec) -> Lowers {
    let count = spec.elements();
    let launch = fill_shader::Launch {
        t: carrier(spec.dtype)?,
        y,
        params: fill_shader::Params { value, count },
    };
    l.linear(launch, count);
    Ok(())
}

pub(super) fn eye(op: &EyeLike, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let value = match y.dtype {
        DType::F32 => [1.0f32.to_bits(), 0],
        DType::F64 => [0, (1.0f64.to_bits() >> 32) as u32],
        _ => [1, 0],
    };
    let count = y.elements();
    let launch = eye_shader::Launch {
        t: carrier(y.dtype)?,
        y: Target::Output(0),
        params: eye_shader::Params {
            value,
            count,
            columns: y.shape.last().copied().unwrap_or(1),
            k: op.k,
        },
    };
    l.linear(launch, count);
    Ok(())
}
