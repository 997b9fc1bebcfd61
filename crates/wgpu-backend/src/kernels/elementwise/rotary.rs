//! Rotary embedding: a thread for each number.

use kilim_core::ops::{Angles, RotaryEmbedding};

use crate::kernels::Kernels;
use crate::lowering::walk::{both, broadcast_steps, collapse};
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::elementwise::rotary::{Launch, Params};
use crate::shaders::{Operand, Target};

pub(super) fn register(kernels: &mut Kernels) {
    kernels.add::<RotaryEmbedding>(rotary);
}

fn rotary(op: &RotaryEmbedding, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let (x, cosines, sines) = (l.input(0)?, l.input(1)?, l.input(2)?);
    let (Some((&size, rows)), Some((&angles, cosines)), Some((_, sines))) = (
        x.shape.split_last(),
        cosines.shape.split_last(),
        sines.shape.split_last(),
    ) else {
        return refuse("the data and its angles have no last dimension");
    };
    let walks = [
        broadcast_steps(cosines, rows)?,
        broadcast_steps(sines, rows)?,
    ];
    let (dims, walks) = collapse(rows, &walks)?;
    let count = x.elements();
    let launch = Launch {
        interleaved: op.interleaved,
        of_numbers: op.angles == Angles::OfNumbers,
        x: Operand::Input(0),
        cosines: Operand::Input(1),
        sines: Operand::Input(2),
        y: Target::Output(0),
        params: Params {
            walk: both(&dims, &walks[0], &walks[1]),
            count,
            size,
            turned: op.turned(angles),
            angles,
        },
    };
    l.linear(launch, count);
    Ok(())
}
