//! Resize.

use kilim_core::DType;
use kilim_core::ops::{CoordinateMode, Resize, ResizeAxis, ResizeMode};

use crate::kernels::Kernels;
use crate::kernels::movement::copy;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::window::resize::{Launch, Params};
use crate::shaders::{Operand, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Resize>(resize);
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
        [] => return copy::whole(l),
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
    let launch = Launch {
        x: Operand::Input(0),
        table: l.table(words),
        y: Target::Output(0),
        params: Params {
            count,
            in_h: first.input,
            out_h: first.output,
            between,
            in_w: axes[w].input,
            out_w: axes[w].output,
            inner: x.shape[w + 1..].iter().product(),
            taps_h,
            taps_w,
            extrapolation: op.extrapolation,
        },
    };
    l.linear(launch, count);
    Ok(())
}
