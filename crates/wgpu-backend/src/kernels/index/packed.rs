//! Gathers of numbers that are packed in a few bits.

use kilim_core::DType;
use kilim_core::ops::{GatherBlockQuantized, Granularity};

use super::in_range;
use crate::device::storage::{is_signed, scalar};
use crate::kernels::Kernels;
use crate::lowering::elements::index_type;
use crate::lowering::walk::around;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::index::gather_packed::{Launch, Params, Zeros};
use crate::shaders::{Operand, Packing, Target};

pub(super) fn register(kernels: &mut Kernels) {
    kernels.add::<GatherBlockQuantized>(gather);
}

/// A table or its zero points, with `in_element` numbers an element.
fn numbers(l: &mut Lowering, i: usize, in_element: usize) -> Lowers<(Operand, Packing)> {
    let dtype = l.input(i)?.dtype;
    Ok(match dtype.size() {
        1 if l.is_known(i) || in_element > 1 => l.packed(i, 8 / in_element),
        _ => (Operand::Input(i), Packing { bits: 32, shift: 0 }),
    })
}

fn gather(op: &GatherBlockQuantized, l: &mut Lowering) -> Lowers {
    let real = l.optional(3).is_some_and(|zeros| zeros.dtype.is_float());
    let stored = match real {
        true => l.float_of([2, 3])?,
        false => l.float_of([2])?,
    };
    let (x, indices, scales) = (l.input(0)?, l.input(1)?, l.input(2)?);
    if scalar(x.dtype).is_none() {
        return refuse(format!("a table of {} is not on the GPU", x.dtype));
    }
    let in_element = ok(op.packed(x.dtype))?;
    let [gathered, quantized] = ok(op.axes(x.shape.len(), in_element))?;
    let mut shape = x.shape.clone();
    shape[quantized] = shape[quantized].saturating_mul(in_element);
    let axis = quantized as i64;
    let Granularity::Block {
        block,
        length,
        inner: behind,
    } = ok(Granularity::new(&shape, &scales.shape, axis, op.block))?
    else {
        return refuse("a table without blocks is not on the GPU");
    };
    let elements = shape.iter().fold(1, |n: usize, &d| n.saturating_mul(d));
    if u32::try_from(elements).is_err() {
        return refuse("the table is too large for the GPU kernel");
    }
    let [_, size, inner] = around(&shape, gathered);
    in_range(l, 1, size)?;
    let (table, packing) = numbers(l, 0, in_element)?;
    let (zeros, zero_packing) = match l.optional(3) {
        None => (Zeros::None, Packing::default()),
        Some(_) if real => {
            let zeros = Operand::Input(3);
            (Zeros::Real { zeros }, Packing::default())
        }
        Some(_) => {
            let (zeros, packing) = numbers(l, 3, in_element)?;
            (Zeros::Packed { zeros }, packing)
        }
    };
    let row = scales.shape[quantized];
    let count = l.output(0)?.elements();
    let launch = Launch {
        s: stored,
        index: index_type(indices.dtype)?,
        x: table,
        indices: Operand::Input(1),
        scales: Operand::Input(2),
        zeros,
        y: Target::Output(0),
        params: Params {
            packing,
            zero_packing,
            count,
            picked: indices.elements(),
            size,
            inner,
            length,
            block,
            blocks: length.div_ceil(block),
            behind,
            row,
            zero_row: row.next_multiple_of(in_element),
            spare: match is_signed(x.dtype) {
                true => 32 - 8 * x.dtype.size(),
                false => 0,
            },
            middle: match x.dtype {
                DType::U8 => 1 << (op.bits - 1),
                _ => 0,
            },
        },
    };
    l.linear(launch, count);
    Ok(())
}
