//! Updates of caches.

use kilim_core::ops::{TensorScatter, normalize_axis};

use crate::kernels::Kernels;
use crate::lowering::elements::{carrier4, index_type};
use crate::lowering::walk::around;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::index::tensor_scatter::{Launch, Params};
use crate::shaders::index::tensor_update;
use crate::shaders::{Index, Operand, Target};

/// The largest index that fits into 32 bits and stands for no other, as `shared/indices.wgsl` says.
const FAR: usize = i32::MAX as usize - 1;

pub(super) fn register(kernels: &mut Kernels) {
    kernels.add::<TensorScatter>(scatter);
}

fn scatter(op: &TensorScatter, l: &mut Lowering) -> Lowers {
    let (cache, update) = (l.input(0)?, l.input(1)?);
    let axis = ok(normalize_axis(op.axis, cache.shape.len()))?;
    if axis == 0 || update.shape.len() != cache.shape.len() {
        return refuse("the update does not fit the cache");
    }
    let [lead, held, inner] = around(&cache.shape, axis);
    let y = l.output(0)?;
    let (room, count) = (y.shape[axis], y.elements());
    let steps = update.shape[axis];
    let (t, unit) = carrier4(cache.dtype, inner.is_multiple_of(4))?;
    let index = match l.optional(2) {
        Some(starts) => index_type(starts.dtype)?,
        None => Index::I64,
    };
    let last = match op.circular || steps == 0 {
        true => FAR,
        false => room.saturating_sub(steps),
    };
    let outer = lead / cache.shape[0].max(1);
    let written = update.elements() / unit;
    // Where nothing is written, there is no launch in which the output could take the input's buffer.
    if l.may_be_on_input && cache.shape == y.shape && steps <= room && written > 0 {
        let launch = tensor_update::Launch {
            t,
            circular: op.circular,
            index,
            update: Operand::Input(1),
            starts: l.optional(2).map(|_| Operand::Input(2)),
            y: Target::Output(0),
            params: tensor_update::Params {
                count: written,
                outer,
                room,
                steps,
                inner: inner / unit,
                last,
            },
        };
        l.linear(launch, written);
        l.lowered.on_input = true;
        return Ok(());
    }
    let count = count / unit;
    let launch = Launch {
        t,
        circular: op.circular,
        index,
        cache: Operand::Input(0),
        update: Operand::Input(1),
        starts: l.optional(2).map(|_| Operand::Input(2)),
        y: Target::Output(0),
        params: Params {
            count,
            outer,
            held,
            room,
            steps,
            inner: inner / unit,
            last,
        },
    };
    l.linear(launch, count);
    Ok(())
}
