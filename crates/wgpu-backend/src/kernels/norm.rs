//! Normalisations.

use kilim_core::ops::{
    BatchNorm, GroupNorm, InstanceNorm, LayerNorm, LpNorm, Lrn, RmsNorm, normalize_axis,
};

use crate::kernels::Kernels;
use crate::lowering::walk::around;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::norm::{
    batch as batch_shader, lp as lp_shader, lrn as lrn_shader, rows as rows_shader,
};
use crate::shaders::{Operand, Target};

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

impl Rows {
    /// So many rows of the first input to `y`, multiplied by input `scale`.
    fn launch(&self, rows: usize, scale: usize, y: Target) -> rows_shader::Launch {
        rows_shader::Launch {
            rms: self.rms,
            x: Operand::Input(0),
            y,
            scale: Operand::Input(scale),
            bias: None,
            means: None,
            inverses: None,
            params: rows_shader::Params {
                rows,
                size: self.size,
                modulus: self.modulus.max(1),
                factor: self.factor,
                divisor: self.divisor.max(1),
                epsilon: self.epsilon,
            },
        }
    }
}

fn rows(r: Rows, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let count = l.input(0)?.elements();
    let rows = count.checked_div(r.size).unwrap_or(0);
    let written = |i: usize| l.node.outputs.get(i).map(|_| Target::Output(i));
    let launch = rows_shader::Launch {
        bias: l.optional(2).filter(|_| !r.rms).map(|_| Operand::Input(2)),
        means: written(1),
        inverses: written(2),
        ..r.launch(rows, 1, Target::Output(0))
    };
    l.grouped(launch, rows);
    Ok(())
}

/// The rows of the first input, divided by their root mean square and multiplied by input `weight`.
pub(crate) fn normalise_rows(weight: usize, epsilon: f32, l: &mut Lowering) -> Lowers<Target> {
    let (count, size) = (l.input(0)?.elements(), l.input(weight)?.elements());
    let rows = count.checked_div(size).unwrap_or(0);
    let y = l.scratch(count.saturating_mul(size_of::<f32>()));
    let of_scale = Rows {
        size,
        modulus: 1,
        factor: 0,
        divisor: 1,
        epsilon,
        rms: true,
    };
    let launch = of_scale.launch(rows, weight, y);
    l.grouped(launch, rows);
    Ok(y)
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
    let launch = batch_shader::Launch {
        x: Operand::Input(0),
        scale: Operand::Input(1),
        bias: Operand::Input(2),
        mean: Operand::Input(3),
        variance: Operand::Input(4),
        y: Target::Output(0),
        params: batch_shader::Params {
            count,
            channels,
            inner,
            epsilon: op.epsilon,
        },
    };
    l.linear(launch, count);
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
    let launch = lrn_shader::Launch {
        x: Operand::Input(0),
        y: Target::Output(0),
        params: lrn_shader::Params {
            count,
            channels,
            inner,
            before: (size - 1) / 2,
            after: size / 2,
            alpha: op.alpha / size as f32,
            beta: op.beta,
            bias: op.bias,
        },
    };
    l.linear(launch, count);
    Ok(())
}

fn lp(op: &LpNorm, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let x = l.input(0)?;
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [outer, size, inner] = around(&x.shape, axis);
    let lines = if size == 0 { 0 } else { outer * inner };
    let launch = lp_shader::Launch {
        x: Operand::Input(0),
        y: Target::Output(0),
        params: lp_shader::Params {
            lines,
            size,
            inner,
            power: op.p as usize,
        },
    };
    l.linear(launch, lines);
    Ok(())
}
