//! Normalisations.

use kilim_core::ops::*;

use super::Kernels;
use super::movement::{around, ok};
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<LayerNorm>(|op, l| trailing(op.axis, op.epsilon, false, l));
    kernels.add::<RmsNorm>(|op, l| trailing(op.axis, op.epsilon, true, l));
    kernels.add::<InstanceNorm>(|op, l| {
        let channels = channels(l)?;
        grouped(channels, op.epsilon, l)
    });
    kernels.add::<GroupNorm>(|op, l| grouped(op.groups, op.epsilon, l));
    kernels.add::<BatchNorm>(batch);
    kernels.add::<Lrn>(lrn);
    kernels.add::<LpNorm>(lp);
}

fn channels(l: &Lowering) -> Lowers<usize> {
    match l.input(0)?.shape.get(1) {
        Some(&c) => Ok(c),
        None => refuse("there is no channel dimension"),
    }
}

/// Rows of `size` elements; see `rows.wgsl` for which scale belongs to which element.
struct Rows {
    size: usize,
    modulus: usize,
    factor: usize,
    divisor: usize,
    epsilon: f32,
    rms: bool,
}

fn rows(r: Rows, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let count = l.input(0)?.elements();
    let rows = count.checked_div(r.size).unwrap_or(0);
    let bias = l.optional(2).is_some();
    let stats = l.node.outputs.len() > 1;
    let mut operands = vec![Operand::Input(0), Operand::Output(0), Operand::Input(1)];
    if bias {
        operands.push(Operand::Input(2));
    }
    if stats {
        let inverse = match l.node.outputs.len() {
            2 => l.scratch(rows * 4),
            _ => Operand::Output(2),
        };
        operands.extend([Operand::Output(1), inverse]);
    }
    let flag = |on| if on { "1" } else { "0" };
    l.grouped(
        "rows",
        &[
            ("RMS", flag(r.rms)),
            ("BIAS", flag(bias)),
            ("STATS", flag(stats)),
        ],
        &operands,
        Params::new()
            .u(rows)
            .u(r.size)
            .u(r.modulus.max(1))
            .u(r.factor)
            .u(r.divisor.max(1))
            .f(r.epsilon),
        rows,
    );
    Ok(())
}

/// Over all dimensions from `axis` on.
fn trailing(axis: i64, epsilon: f32, rms: bool, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axis = ok(normalize_axis(axis, x.shape.len()))?;
    let size: usize = x.shape[axis..].iter().product();
    for i in 1..=2 {
        if l.optional(i).is_some_and(|s| s.elements() != size) {
            return refuse("a scale or bias that broadcasts is not on the GPU");
        }
    }
    rows(
        Rows {
            size,
            modulus: 1,
            factor: 0,
            divisor: 1,
            epsilon,
            rms,
        },
        l,
    )
}

/// Over the channels of each group and all space; scale and bias by channel.
fn grouped(groups: usize, epsilon: f32, l: &mut Lowering) -> Lowers {
    let (x, channels) = (l.input(0)?, channels(l)?);
    let space: usize = x.shape[2..].iter().product();
    let each = channels.checked_div(groups).unwrap_or(0);
    if l.optional(1).is_some_and(|s| s.elements() != channels) {
        return refuse("the scale is not by channel");
    }
    rows(
        Rows {
            size: each * space,
            modulus: groups,
            factor: each,
            divisor: space,
            epsilon,
            rms: false,
        },
        l,
    )
}

fn batch(op: &BatchNorm, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    if l.node.outputs.len() > 1 {
        return refuse("batch normalisation for training is not on the GPU");
    }
    let x = l.input(0)?;
    let (channels, inner) = channel_walk(&x.shape, op.channels_last);
    let count = x.elements();
    let inputs = (0..5).map(Operand::Input);
    let operands: Vec<_> = inputs.chain([Operand::Output(0)]).collect();
    l.linear(
        "batch",
        &[],
        &operands,
        Params::new().u(count).u(channels).u(inner).f(op.epsilon),
        count,
    );
    Ok(())
}

/// Channels, and elements between one and the next.
fn channel_walk(shape: &[usize], last: bool) -> (usize, usize) {
    if last || shape.len() < 2 {
        (shape.last().copied().unwrap_or(1), 1)
    } else {
        (shape[1], shape[2..].iter().product())
    }
}

fn lrn(op: &Lrn, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let x = l.input(0)?;
    let (channels, inner) = channel_walk(&x.shape, op.channels_last);
    let count = x.elements();
    let size = op.size.max(1);
    l.linear(
        "lrn",
        &[],
        &[Operand::Input(0), Operand::Output(0)],
        Params::new()
            .u(count)
            .u(channels)
            .u(inner)
            .u((size - 1) / 2)
            .u(size / 2)
            .f(op.alpha / size as f32)
            .f(op.beta)
            .f(op.bias),
        count,
    );
    Ok(())
}

fn lp(op: &LpNorm, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let x = l.input(0)?;
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [outer, size, inner] = around(&x.shape, axis);
    let lines = if size == 0 { 0 } else { outer * inner };
    l.linear(
        "lp",
        &[],
        &[Operand::Input(0), Operand::Output(0)],
        Params::new().u(lines).u(size).u(inner).u(op.p as usize),
        lines,
    );
    Ok(())
}
