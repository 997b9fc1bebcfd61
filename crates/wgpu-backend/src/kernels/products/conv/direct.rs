//! Convolutions and transposed ones with a thread for each output element.

use kilim_core::ops::{ConvGeometry, ConvTranspose};

use super::Window;
use crate::lowering::{Lowering, Lowers};
use crate::shaders::products::conv_direct::{Launch, Params};
use crate::shaders::{Operand, Target};

/// One thread an output element; any layout, weights as they are.
pub(super) fn direct(c: &Window, transposed: bool, l: &mut Lowering) {
    let [d, h, w] = &c.axes;
    let outs = [d.output, h.output, w.output];
    let (dims, what): (Vec<usize>, Vec<usize>) = if c.channels_last {
        (
            vec![c.batch, outs[0], outs[1], outs[2], c.outputs * c.groups],
            vec![0, 2, 3, 4, 1],
        )
    } else {
        (
            vec![c.batch, c.outputs * c.groups, outs[0], outs[1], outs[2]],
            vec![0, 1, 2, 3, 4],
        )
    };
    let walk = c.walk([d.input, h.input, w.input], c.inputs * c.groups);
    let count: usize = dims.iter().product();
    let (w_out, w_in) = if transposed {
        (c.taps(), c.outputs * c.taps())
    } else {
        (c.inputs * c.taps(), c.taps())
    };
    let [bias, residual] = c.addends();
    let launch = Launch {
        s: c.stored,
        transposed,
        x: Operand::Input(0),
        w: Operand::Input(1),
        y: Target::Output(0),
        bias,
        residual,
        params: Params {
            dims: &dims,
            what: &what,
            walk: &walk,
            window: (&c.axes).into(),
            act: (&c.activation).into(),
            rank: dims.len(),
            count,
            in_channels: c.inputs,
            out_channels: c.outputs,
            w_out,
            w_in,
        },
    };
    l.linear(launch, count);
}

pub(super) fn transpose(op: &ConvTranspose, l: &mut Lowering) -> Lowers {
    let (x, w) = (l.input(0)?, l.input(1)?);
    let geometry = ConvGeometry::transposed(op, &x.shape, &w.shape);
    let c = Window::new(geometry, op.activation, l)?;
    direct(&c, true, l);
    Ok(())
}
