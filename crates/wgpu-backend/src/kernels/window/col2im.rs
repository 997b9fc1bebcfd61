//! Col2Im.

use kilim_core::DType;
use kilim_core::ops::{Col2Im, Col2ImGeometry};

use crate::kernels::Kernels;
use crate::lowering::window::three;
use crate::lowering::{Lowering, Lowers, ok};
use crate::shaders::window::col2im::{Launch, Params};
use crate::shaders::{Operand, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Col2Im>(col2im);
}

fn col2im(op: &Col2Im, l: &mut Lowering) -> Lowers {
    l.want(0, DType::F32)?;
    let g = ok(Col2ImGeometry::new(op, &l.input(0)?.shape, l.node))?;
    let axes = three(&g.axes)?;
    let count = l.output(0)?.elements();
    let launch = Launch {
        x: Operand::Input(0),
        y: Target::Output(0),
        params: Params {
            window: (&axes).into(),
            blocks: axes.map(|a| a.output),
            count,
        },
    };
    l.linear(launch, count);
    Ok(())
}
