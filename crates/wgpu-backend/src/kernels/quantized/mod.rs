//! Quantised numbers, to the bit as on the CPU: what decides between two steps is computed in integers
//! (`shaders/shared/quantize.wgsl`), and what is known while planning on the host.

mod binary;
mod dynamic;
mod linear;
mod parameters;
mod product;
mod resize;
mod softmax;

use kilim_core::DType;
use kilim_core::ops::TableLookup;

use crate::kernels::Kernels;
use crate::lowering::elements::{carrier4, index_type};
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::index::gather;
use crate::shaders::{Operand, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    linear::register(kernels);
    product::register(kernels);
    binary::register(kernels);
    dynamic::register(kernels);
    softmax::register(kernels);
    resize::register(kernels);
    kernels.add::<TableLookup>(|_, l| look_up(l));
}

/// A Gather: negative numbers count from the end of the table, where their bytes are.
fn look_up(l: &mut Lowering) -> Lowers {
    let (bytes, table, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let count = y.elements();
    let launch = gather::Launch {
        t: carrier4(table.dtype, false)?.0,
        index: index_type(bytes.dtype)?,
        x: Operand::Input(1),
        indices: Operand::Input(0),
        y: Target::Output(0),
        params: gather::Params {
            count,
            picked: count,
            size: 256,
            inner: 1,
        },
    };
    l.linear(launch, count);
    Ok(())
}

/// The smallest and the largest number of a quantised type.
pub(crate) fn range(dtype: DType) -> Lowers<[i32; 2]> {
    let bits = dtype.bits();
    match dtype {
        DType::I8 | DType::I16 | DType::I4 | DType::I2 | DType::I32 => {
            Ok([i32::MIN >> (32 - bits), i32::MAX >> (32 - bits)])
        }
        DType::U8 | DType::U16 | DType::U4 | DType::U2 => Ok([0, (1 << bits) - 1]),
        _ => refuse(format!("quantisation to {dtype} is not on the GPU")),
    }
}

fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::U8)
}

/// The numbers of input `i`, where they are known; none where it is missing.
fn known(l: &Lowering, i: usize) -> Option<Vec<f64>> {
    match l.optional(i) {
        None => Some(Vec::new()),
        Some(spec) => spec.value.as_ref()?.to_f64s().ok(),
    }
}
