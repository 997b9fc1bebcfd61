//! Convolutions and transposed ones with a thread for each output element.

use kilim_core::ops::{ConvGeometry, ConvTranspose, WindowAxis};

use super::Window;
use crate::kernels::matmul::flag;
use crate::lower::{Lowering, Lowers, Operand};
use crate::params::{Params, activation_words};

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
    let three = |p: Params, f: fn(&WindowAxis) -> usize| c.axes.iter().fold(p, |p, a| p.u(f(a)));
    let [act, act_a, act_b] = activation_words(&c.activation);
    let mut p = Params::new()
        .dims(&dims)
        .dims(&what)
        .dims(&walk)
        .u(dims.len())
        .u(count)
        .u(c.inputs)
        .u(c.outputs);
    p = three(p, |a| a.input).word(act);
    p = three(p, |a| a.kernel).word(act_a);
    p = three(p, |a| a.stride).word(act_b);
    p = three(p, |a| a.dilation).u(w_out);
    p = three(p, |a| a.begin).u(w_in);
    l.linear(
        "conv_direct",
        &[
            ("S", c.stored),
            ("TRANSPOSED", flag(transposed)),
            ("BIAS", flag(c.bias)),
            ("RESIDUAL", flag(c.residual)),
        ],
        &c.operands(Operand::Input(1)),
        p,
        count,
    );
}

pub(super) fn transpose(op: &ConvTranspose, l: &mut Lowering) -> Lowers {
    let (x, w) = (l.input(0)?, l.input(1)?);
    let geometry = ConvGeometry::transposed(op, &x.shape, &w.shape);
    let c = Window::new(geometry, op.activation, l)?;
    direct(&c, true, l);
    Ok(())
}
