//! Where and Clip with bounds that are inputs.

use kilim_core::DType;
use kilim_core::ops::{Clip, Where};

use super::Kernels;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage::{self, Scalar, scalar};
use crate::walk::{broadcast_strides, collapse};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Where>(|_, l| select(l));
    kernels.add::<Clip>(|_, l| clip(l));
}

/// The type in which elements of a dtype are moved without being looked at.
pub(crate) fn carrier(dtype: DType) -> Lowers<&'static str> {
    match storage::words(dtype) {
        Some(1) => Ok("u32"),
        Some(_) => Ok("vec2u"),
        None => refuse(format!("the GPU does not move single elements of {dtype}")),
    }
}

fn select(l: &mut Lowering) -> Lowers {
    let (c, a, b, y) = (l.input(0)?, l.input(1)?, l.input(2)?, l.output(0)?);
    l.want(0, DType::Bool)?;
    let walk = |shape: &[usize]| -> Lowers<Vec<i64>> {
        let s = broadcast_strides(shape, &y.shape)?;
        Ok(s.into_iter().map(|s| s as i64).collect())
    };
    let walks = [walk(&c.shape)?, walk(&a.shape)?, walk(&b.shape)?];
    let (dims, walks) = collapse(&y.shape, &walks)?;
    let params = Params::new()
        .dims(&dims)
        .signed(&walks[0])
        .signed(&walks[1])
        .signed(&walks[2])
        .u(dims.len())
        .u(y.elements());
    l.linear(
        "where",
        &[("T", carrier(y.dtype)?)],
        &[
            Operand::Input(0),
            Operand::Input(1),
            Operand::Input(2),
            Operand::Output(0),
        ],
        params,
        y.elements(),
    );
    Ok(())
}

fn clip(l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let Some(Scalar { name: t, .. }) = scalar(y.dtype) else {
        return refuse(format!("Clip on {} is not on the GPU", y.dtype));
    };
    let (lower, upper) = (l.optional(1).is_some(), l.optional(2).is_some());
    if !lower && !upper {
        return super::copy::whole(l);
    }
    let flag = |on| if on { "1" } else { "0" };
    let mut operands = vec![Operand::Input(0), Operand::Output(0)];
    if lower {
        operands.push(Operand::Input(1));
    }
    if upper {
        operands.push(Operand::Input(2));
    }
    l.linear(
        "clip",
        &[("T", t), ("LOWER", flag(lower)), ("UPPER", flag(upper))],
        &operands,
        Params::new().u(y.elements()),
        y.elements(),
    );
    Ok(())
}
