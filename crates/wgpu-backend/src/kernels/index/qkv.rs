//! Queries, keys and values taken apart, turned, and written on caches, in one launch.

use kilim_core::backend::TensorSpec;
use kilim_core::ops::UnpackQkv;

use crate::kernels::Kernels;
use crate::kernels::movement::{Padding, padded};
use crate::lowering::elements::index_type;
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::index::qkv::{Launch, Params};
use crate::shaders::movement::pad::Mode;
use crate::shaders::{Operand, Target};

pub(super) fn register(kernels: &mut Kernels) {
    kernels.add::<UnpackQkv>(unpack);
}

fn unpack(op: &UnpackQkv, l: &mut Lowering) -> Lowers {
    l.want_f32_of(0..5)?;
    let (packed, cosines, sines) = (l.input(0)?, l.input(1)?, l.input(2)?);
    let (cache, starts) = (l.input(3)?, l.input(5)?);
    let output = l.output(1)?;
    let (&[_, steps, _], &[.., pairs], &[.., room, size]) =
        (&packed.shape[..], &cosines.shape[..], &output.shape[..])
    else {
        return refuse("the inputs do not fit each other");
    };
    let rows = |angles: &TensorSpec| match angles.shape[0] {
        1 => 0,
        _ => steps,
    };
    let count = packed.elements();
    // Where nothing is written, there is no launch in which the outputs could take the inputs' buffers.
    l.lowered.on_input = l.may_be_on_input && cache.shape == output.shape && count > 0;
    if !l.lowered.on_input {
        let longer = room.saturating_sub(cache.shape[2]);
        for i in [1, 2] {
            let padding = Padding {
                mode: Mode::Constant,
                pads: &[(0, 0), (0, 0), (0, longer as i64), (0, 0)],
                fill: [0, 0],
            };
            padded(l, 2 + i, padding, Target::Output(i))?;
        }
    }
    let launch = Launch {
        interleaved: op.interleaved,
        index: index_type(starts.dtype)?,
        packed: Operand::Input(0),
        cosines: Operand::Input(1),
        sines: Operand::Input(2),
        starts: Operand::Input(5),
        queries: Target::Output(0),
        keys: Target::Output(1),
        values: Target::Output(2),
        params: Params {
            count,
            steps,
            size,
            turned: 2 * pairs,
            query_heads: op.query_heads,
            key_heads: op.key_heads,
            room,
            last: room.saturating_sub(steps),
            cosine_rows: rows(cosines),
            sine_rows: rows(sines),
        },
    };
    l.linear(launch, count);
    Ok(())
}
