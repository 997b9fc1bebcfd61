//! Operators that order elements.

use kilim_core::DType;
use kilim_core::ops::{TopK, normalize_axis};

use crate::device::storage::scalar;
use crate::kernels::Kernels;
use crate::lowering::walk::around;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::sort::top_k::{Launch, Params, T};
use crate::shaders::{Operand, Target, Word};

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
    let t = match (x.dtype, scalar(x.dtype).map(|s| s.word)) {
        (DType::I64, _) => T::I64,
        (DType::U64, _) => T::U64,
        (_, Some(Word::F32)) => T::F32,
        (_, Some(Word::I32)) => T::I32,
        (_, Some(Word::U32)) => T::U32,
        (d, None) => return refuse(format!("{d} is not ordered on the GPU")),
    };
    let places = match l.node.outputs.len() {
        1 => l.scratch(y.elements() * 8),
        _ => Target::Output(1),
    };
    let count = if y.elements() == 0 { 0 } else { x.elements() };
    let launch = Launch {
        t,
        x: Operand::Input(0),
        values: Target::Output(0),
        places,
        params: Params {
            count,
            size,
            inner,
            k: y.shape[axis],
            largest: op.largest.into(),
        },
    };
    l.linear(launch, count);
    Ok(())
}
