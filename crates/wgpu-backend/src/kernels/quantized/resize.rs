//! QuantizedResize.

use kilim_core::DType;
use kilim_core::ops::QuantizedResize;

use super::super::Kernels;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;

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
        DType::U8 => "f32",
        _ => "i32",
    };
    for (input, output) in [(height, rows), (width, columns)] {
        if t == "f32" {
            for p in op.places(input, output) {
                table.extend([p.lower as u32, p.upper as u32, p.distance.to_bits()]);
            }
        } else {
            for p in op.fixed_places(input, output) {
                table.extend([p.lower as u32, p.upper as u32, p.distance as u32]);
            }
        }
    }
    let operands = [Operand::Input(0), l.table(table), Operand::Output(0)];
    let params = [y.elements(), rows, columns, channels, height, width, 0];
    let params = params.into_iter().fold(Params::new(), Params::u);
    l.linear(
        "quantized_resize",
        &[("T", t)],
        &operands,
        params,
        y.elements(),
    );
    Ok(())
}
