//! Where and Clip with bounds that are inputs.

use kilim_core::DType;
use kilim_core::ops::{Clip, Where};

use crate::device::storage::scalar;
use crate::kernels::Kernels;
use crate::kernels::movement::copy;
use crate::lowering::elements::carrier;
use crate::lowering::walk::{broadcast_steps, collapse};
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::elementwise::{clip, select};
use crate::shaders::{Operand, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Where>(|_, l| choose(l));
    kernels.add::<Clip>(|_, l| limit(l));
}

fn choose(l: &mut Lowering) -> Lowers {
    let (c, a, b, y) = (l.input(0)?, l.input(1)?, l.input(2)?, l.output(0)?);
    l.want(0, DType::Bool)?;
    let mut walks = Vec::with_capacity(3);
    for input in [c, a, b] {
        walks.push(broadcast_steps(&input.shape, &y.shape)?);
    }
    let (dims, walks) = collapse(&y.shape, &walks)?;
    let launch = select::Launch {
        t: carrier(y.dtype)?,
        c: Operand::Input(0),
        a: Operand::Input(1),
        b: Operand::Input(2),
        y: Target::Output(0),
        params: select::Params {
            dims: &dims,
            walk_c: &walks[0],
            walk_a: &walks[1],
            walk_b: &walks[2],
            rank: dims.len(),
            units: y.elements(),
        },
    };
    l.linear(launch, y.elements());
    Ok(())
}

fn limit(l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let Some(scalar) = scalar(y.dtype) else {
        return refuse(format!("Clip on {} is not on the GPU", y.dtype));
    };
    let [lower, upper] = [1, 2].map(|i| l.optional(i).map(|_| Operand::Input(i)));
    if lower.is_none() && upper.is_none() {
        return copy::whole(l);
    }
    let launch = clip::Launch {
        t: scalar.word,
        x: Operand::Input(0),
        y: Target::Output(0),
        lower,
        upper,
        params: clip::Params {
            count: y.elements(),
        },
    };
    l.linear(launch, y.elements());
    Ok(())
}
