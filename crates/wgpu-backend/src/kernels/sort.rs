//! Operators that order elements.

use kilim_core::DType;
use kilim_core::ops::{TopK, normalize_axis};

use super::Kernels;
use super::movement::{around, ok};
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage::scalar;

/// Each element is compared with all of its line: longer ones are the CPU's.
const LONGEST: usize = 1 << 14;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<TopK>(top_k);
}

fn top_k(op: &TopK, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [_, size, inner] = around(&x.shape, axis);
    if size > LONGEST {
        return refuse(format!(
            "lines of more than {LONGEST} elements are not ordered on the GPU"
        ));
    }
    let t = match (x.dtype, scalar(x.dtype)) {
        (DType::I64, _) => "i64",
        (DType::U64, _) => "u64",
        (_, Some(scalar)) => scalar.name,
        (d, None) => return refuse(format!("{d} is not ordered on the GPU")),
    };
    let places = match l.node.outputs.len() {
        1 => l.scratch(y.elements() * 8),
        _ => Operand::Output(1),
    };
    let count = if y.elements() == 0 { 0 } else { x.elements() };
    l.linear(
        "top_k",
        &[("T", t)],
        &[Operand::Input(0), Operand::Output(0), places],
        Params::new()
            .u(count)
            .u(size)
            .u(inner)
            .u(y.shape[axis])
            .u(usize::from(op.largest)),
        count,
    );
    Ok(())
}
