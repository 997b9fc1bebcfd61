//! QuantizedResize.

use kilim_core::DType;
use kilim_core::ops::QuantizedResize;

use crate::kernels::Kernels;
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::quantized::resize::{Launch, Params, T};
use crate::shaders::{Operand, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<QuantizedResize>(resize);
}

fn resize(op: &QuantizedResize, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let (&[_, height, width, _], &[_, rows, columns, channels]) = (&x.shape[..], &y.shape[..])
    else {
        return refuse("QuantizedResize takes images");
    };
    if y.elements() == 0 {
        return Ok(());
    }
    let mut table = Vec::new();
    let t = match x.dtype {
        DType::U8 => T::F32,
        _ => T::I32,
    };
    for (input, output) in [(height, rows), (width, columns)] {
        if t == T::F32 {
            for p in op.places(input, output) {
                table.extend([p.lower as u32, p.upper as u32, p.distance.to_bits()]);
            }
        } else {
            for p in op.fixed_places(input, output) {
                table.extend([p.lower as u32, p.upper as u32, p.distance as u32]);
            }
        }
    }
    let launch = Launch {
        t,
        x: Operand::Input(0),
        table: l.table(table),
        y: Target::Output(0),
        params: Params {
            count: y.elements(),
            rows,
            columns,
            channels,
            height,
            width,
            nothing: 0,
        },
    };
    l.linear(launch, y.elements());
    Ok(())
}
