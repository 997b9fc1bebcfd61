//! Pooling and resampling.

use kilim_core::DType;
use kilim_core::ops::*;

use super::movement::ok;
use super::{Kernels, quantized};
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::{Params, activation_words};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<MaxPool>(|op, l| {
        if l.node.outputs.len() > 1 {
            return refuse("the positions of maxima are not on the GPU");
        }
        pool(&Pool::new("Max", &op.window, op.channels_last), l)
    });
    kernels.add::<AveragePool>(|op, l| {
        let mut p = Pool::new("Average", &op.window, op.channels_last);
        p.padded = op.count_include_pad;
        p.activation = op.activation;
        pool(&p, l)
    });
    kernels.add::<LpPool>(|op, l| {
        let mut p = Pool::new("Lp", &op.window, op.channels_last);
        p.power = op.p.into();
        pool(&p, l)
    });
    kernels.add::<Resize>(resize);
    kernels.add::<Col2Im>(col2im);
}

struct Pool<'a> {
    name: &'static str,
    window: &'a Window,
    channels_last: bool,
    padded: bool,
    power: i64,
    activation: Activation,
}

impl<'a> Pool<'a> {
    fn new(name: &'static str, window: &'a Window, channels_last: bool) -> Pool<'a> {
        Pool {
            name,
            window,
            channels_last,
            padded: false,
            power: 0,
            activation: Activation::None,
        }
    }
}

fn pool(op: &Pool, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let (t, power) = match x.dtype {
        DType::I8 | DType::U8 if op.name != "Lp" && op.activation == Activation::None => {
            ("i32", quantized::range(x.dtype)?[0].into())
        }
        _ => {
            l.want_f32()?;
            ("f32", op.power)
        }
    };
    let g = ok(PoolGeometry::new(op.window, op.channels_last, &x.shape))?;
    let axes = super::conv::three(&g.axes)?;
    let outs = axes.map(|a| a.output);
    let ins = axes.map(|a| a.input);
    let space: usize = ins.iter().product();
    let (dims, what, walk) = if g.channels_last {
        let c = g.channels;
        (
            [g.batch, outs[0], outs[1], outs[2], c],
            [0, 2, 3, 4, 1],
            [space * c, 1, ins[1] * ins[2] * c, ins[2] * c, c],
        )
    } else {
        (
            [g.batch, g.channels, outs[0], outs[1], outs[2]],
            [0, 1, 2, 3, 4],
            [space * g.channels, space, ins[1] * ins[2], ins[2], 1],
        )
    };
    let count: usize = dims.iter().product();
    let three = |p: Params, f: fn(&WindowAxis) -> usize| axes.iter().fold(p, |p, a| p.u(f(a)));
    let [act, act_a, act_b] = activation_words(&op.activation);
    let mut p = Params::new()
        .dims(&dims)
        .dims(&what)
        .dims(&walk)
        .u(dims.len())
        .u(count)
        .u(usize::from(op.padded))
        .i(power);
    p = three(p, |a| a.input).word(act);
    p = three(p, |a| a.kernel).word(act_a);
    p = three(p, |a| a.stride).word(act_b);
    p = three(p, |a| a.dilation).u(0);
    p = three(p, |a| a.begin).u(0);
    p = three(p, |a| a.begin + a.input + a.end);
    l.linear(
        "pool",
        &[("OP", op.name), ("T", t)],
        &[Operand::Input(0), Operand::Output(0)],
        p,
        count,
    );
    Ok(())
}

fn col2im(op: &Col2Im, l: &mut Lowering) -> Lowers {
    l.want(0, DType::F32)?;
    let g = ok(Col2ImGeometry::new(op, &l.input(0)?.shape, l.node))?;
    let axes = super::conv::three(&g.axes)?;
    let count = l.output(0)?.elements();
    let three = |p: Params, f: fn(&WindowAxis) -> usize| axes.iter().fold(p, |p, a| p.u(f(a)));
    let mut p = three(Params::new(), |a| a.input).u(count);
    p = three(p, |a| a.kernel).u(0);
    p = three(p, |a| a.stride).u(0);
    p = three(p, |a| a.dilation).u(0);
    p = three(p, |a| a.begin).u(0);
    p = three(p, |a| a.output);
    l.linear(
        "col2im",
        &[],
        &[Operand::Input(0), Operand::Output(0)],
        p,
        count,
    );
    Ok(())
}

/// Where the samples of one output position are: index and weight of each tap, or outside.
struct Sample {
    taps: Vec<(usize, f32)>,
    outside: bool,
}

fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
    } else {
        0.0
    }
}

fn sample(op: &Resize, axis: &ResizeAxis, o: usize) -> Sample {
    let x = op.coordinate(axis, o);
    let last = axis.input.saturating_sub(1) as f64;
    let outside = op.is_outside(axis, x);
    let clamped = |i: f64| i.clamp(0.0, last) as usize;
    let shrink = if op.antialias {
        axis.scale.min(1.0)
    } else {
        1.0
    };
    let weight: &dyn Fn(f64) -> f64 = match op.mode {
        ResizeMode::Nearest(mode) => {
            return Sample {
                taps: vec![(mode.of(x, axis.input), 1.0)],
                outside,
            };
        }
        ResizeMode::Linear => &|d: f64| (1.0 - d.abs()).max(0.0),
        ResizeMode::Cubic { a } => &move |d: f64| cubic(d, a.into()),
    };
    let reach = if matches!(op.mode, ResizeMode::Linear) {
        1.0
    } else {
        2.0
    };
    let first = (-reach / shrink).floor() + 1.0;
    let count = (2.0 - 2.0 * first) as usize;
    // A whole position counts as the end of the interval before it.
    let base = x.ceil() - 1.0;
    let mut taps: Vec<(f64, f64)> = (0..count)
        .map(|k| {
            let i = base + first + k as f64;
            (i, weight((i - x) * shrink))
        })
        .collect();
    if op.exclude_outside {
        taps.iter_mut()
            .filter(|(i, _)| *i < 0.0 || *i > last)
            .for_each(|t| t.1 = 0.0);
    }
    if op.exclude_outside || op.antialias {
        let sum: f64 = taps.iter().map(|t| t.1).sum();
        taps.iter_mut().for_each(|t| t.1 /= sum);
    }
    Sample {
        taps: taps.iter().map(|&(i, w)| (clamped(i), w as f32)).collect(),
        outside,
    }
}

/// Rows of the shader's table for one axis; the taps of a position.
fn table(op: &Resize, axis: &ResizeAxis, words: &mut Vec<u32>) -> usize {
    let samples: Vec<Sample> = (0..axis.output).map(|o| sample(op, axis, o)).collect();
    let taps = samples.iter().map(|s| s.taps.len()).max().unwrap_or(1);
    for s in &samples {
        words.push(u32::from(s.outside));
        for k in 0..taps {
            let (i, w) = s.taps.get(k).copied().unwrap_or((0, 0.0));
            words.extend([i as u32, w.to_bits()]);
        }
    }
    taps
}

fn resize(op: &Resize, l: &mut Lowering) -> Lowers {
    l.want(0, DType::F32)?;
    let x = l.input(0)?;
    let axes = ok(op.resolve(&x.shape, l.node))?;
    let still = |a: &ResizeAxis| {
        a.input == a.output
            && a.scale == 1.0
            && a.roi == (0.0, 1.0)
            && op.coordinates != CoordinateMode::TfHalfPixelForNearest
    };
    let moving: Vec<usize> = (0..axes.len()).filter(|&i| !still(&axes[i])).collect();
    let (h, w) = match moving[..] {
        [] => return super::copy::whole(l),
        [w] => (None, w),
        [h, w] => (Some(h), w),
        _ => return refuse("resizing more than two dimensions is not on the GPU"),
    };
    let one = ResizeAxis {
        input: 1,
        output: 1,
        scale: 1.0,
        roi: (0.0, 1.0),
    };
    let plain = Resize {
        coordinates: CoordinateMode::Asymmetric,
        ..op.clone()
    };
    let mut words = Vec::new();
    let (first, taps_h) = match h {
        Some(h) => (axes[h], table(op, &axes[h], &mut words)),
        None => (one, table(&plain, &one, &mut words)),
    };
    let taps_w = table(op, &axes[w], &mut words);
    let between: usize = x.shape[h.map_or(0, |h| h + 1)..w].iter().product();
    let count = l.output(0)?.elements();
    let params = Params::new()
        .u(count)
        .u(first.input)
        .u(first.output)
        .u(between)
        .u(axes[w].input)
        .u(axes[w].output)
        .u(x.shape[w + 1..].iter().product())
        .u(taps_h)
        .u(taps_w)
        .f(op.extrapolation);
    let table = l.table(words);
    l.linear(
        "resize",
        &[],
        &[Operand::Input(0), table, Operand::Output(0)],
        params,
        count,
    );
    Ok(())
}
