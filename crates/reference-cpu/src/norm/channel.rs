//! Normalisations with parameters for each channel.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::shape_error;
use kilim_core::ops::{BatchNorm, GroupNorm, InstanceNorm, Lrn};

use super::moments;
use crate::by_real;
use crate::common::Real;
use crate::common::rules::required;
use crate::frame::{Build, Io, Kernel};

/// The mean is taken off first: times an infinite slope it could not be any more.
fn line<T: Real>(x: &[T], mean: T, slope: T, shift: T, y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = (x - mean) * slope + shift;
    }
}

/// Batch, channels, and elements behind a channel.
fn planes(node: &NodeSpec) -> Result<(usize, usize, usize)> {
    match &required(node, 0)?.shape[..] {
        [n, c, rest @ ..] => Ok((*n, *c, rest.iter().product())),
        _ => Err(shape_error("two dimensions or more are needed")),
    }
}

pub fn build_batch(op: &BatchNorm, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let (channels, plane) = match &x.shape[..] {
        [.., c] if op.channels_last => (*c, 1),
        [_, c, rest @ ..] => (*c, rest.iter().product()),
        // One dimension: that of the batch, with a single channel.
        [_] => (1, 1),
        [] => return Err(shape_error("a scalar has no channels")),
    };
    by_real!(x.dtype, T => Ok(Box::new(Batch::<T> {
        epsilon: op.epsilon.into(),
        channels,
        plane,
        element: PhantomData,
    })))
}

struct Batch<T> {
    epsilon: f64,
    channels: usize,
    plane: usize,
    element: PhantomData<T>,
}

impl<T> Batch<T> {
    /// How many slopes are laid out: a few channels side by side are repeated, so that the loop
    /// over them is long.
    fn period(&self) -> usize {
        match self.plane {
            1 if self.channels > 0 => self.channels * 64usize.div_ceil(self.channels),
            _ => self.channels,
        }
    }
}

impl<T: Real> Kernel for Batch<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<T>(0);
        let [scale, bias, mean, variance] = [1, 2, 3, 4].map(|i| io.input::<T>(i));
        let period = self.period();
        let (slopes, rest) = io.scratch::<T>(3 * period).split_at_mut(period);
        let (means, shifts) = rest.split_at_mut(period);
        for i in 0..period {
            let c = i % self.channels;
            let slope = scale[c].wide() / (variance[c].wide() + self.epsilon).sqrt();
            (slopes[i], means[i], shifts[i]) = (T::of(slope), mean[c], bias[c]);
        }
        let y = io.output::<T>(0);
        if self.plane == 1 {
            let rows = x.chunks(period.max(1)).zip(y.chunks_mut(period.max(1)));
            for (x, y) in rows {
                let lines = means.iter().zip(&*slopes).zip(&*shifts);
                for ((y, &x), ((&mean, &slope), &shift)) in y.iter_mut().zip(x).zip(lines) {
                    *y = (x - mean) * slope + shift;
                }
            }
        } else if self.plane > 0 {
            let planes = x
                .chunks_exact(self.plane)
                .zip(y.chunks_exact_mut(self.plane));
            for (i, (x, y)) in planes.enumerate() {
                let c = i % self.channels;
                line(x, means[c], slopes[c], shifts[c], y);
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        3 * self.period() * size_of::<T>()
    }
}

pub fn build_instance(
    op: &InstanceNorm,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (_, channels, plane) = planes(node)?;
    group(node, channels, channels, plane, op.epsilon)
}

pub fn build_group(op: &GroupNorm, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (_, channels, plane) = planes(node)?;
    if op.groups == 0 || channels % op.groups != 0 {
        return Err(shape_error("the channels are not a multiple of the groups"));
    }
    group(node, op.groups, channels, plane, op.epsilon)
}

fn group(
    node: &NodeSpec,
    groups: usize,
    channels: usize,
    plane: usize,
    epsilon: f32,
) -> Result<Box<dyn Kernel>> {
    by_real!(required(node, 0)?.dtype, T => Ok(Box::new(Group::<T> {
        groups,
        channels,
        plane,
        epsilon: epsilon.into(),
        element: PhantomData,
    })))
}

/// Every group of channels of every image has mean and deviation of its own.
struct Group<T> {
    groups: usize,
    channels: usize,
    plane: usize,
    epsilon: f64,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Group<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, scale, bias) = (io.input::<T>(0), io.input::<T>(1), io.input::<T>(2));
        let y = io.output::<T>(0);
        let deep = self.channels / self.groups.max(1);
        let size = deep * self.plane;
        if size == 0 {
            return Ok(());
        }
        for (g, (x, y)) in x
            .chunks_exact(size)
            .zip(y.chunks_exact_mut(size))
            .enumerate()
        {
            let (mean, variance) = moments(x.iter().copied());
            let inverse = 1.0 / (variance + self.epsilon).sqrt();
            let planes = x
                .chunks_exact(self.plane)
                .zip(y.chunks_exact_mut(self.plane));
            for (i, (x, y)) in planes.enumerate() {
                let c = g % self.groups * deep + i;
                let slope = T::of(scale[c].wide() * inverse);
                line(x, T::of(mean), slope, bias[c], y);
            }
        }
        Ok(())
    }
}

pub fn build_lrn(op: &Lrn, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let (channels, plane) = match &x.shape[..] {
        [.., c] if op.channels_last => (*c, 1),
        [_, c, rest @ ..] => (*c, rest.iter().product()),
        _ => return Err(shape_error("two dimensions or more are needed")),
    };
    by_real!(x.dtype, T => Ok(Box::new(Response::<T> {
        op: op.clone(),
        channels,
        plane,
        element: PhantomData,
    })))
}

struct Response<T> {
    op: Lrn,
    channels: usize,
    plane: usize,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Response<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input::<T>(0), io.output::<T>(0));
        let size = self.channels * self.plane;
        if size == 0 {
            return Ok(());
        }
        let (before, after) = ((self.op.size.max(1) - 1) / 2, self.op.size / 2);
        let weight = f64::from(self.op.alpha) / self.op.size.max(1) as f64;
        let (bias, beta) = (f64::from(self.op.bias), f64::from(self.op.beta));
        for (x, y) in x.chunks_exact(size).zip(y.chunks_exact_mut(size)) {
            for c in 0..self.channels {
                let near = c.saturating_sub(before)..(c + after + 1).min(self.channels);
                for p in 0..self.plane {
                    let squares: f64 = near
                        .clone()
                        .map(|n| x[n * self.plane + p].wide().powi(2))
                        .sum();
                    let at = c * self.plane + p;
                    y[at] = T::of(x[at].wide() / (bias + weight * squares).powf(beta));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{assert_close, noise, run_f32, tensor};

    #[test]
    fn batch_norm_in_both_layouts() {
        let [s, b, m] = [1, 2, 3].map(|seed| noise(3, seed));
        let v = [0.5f32, 1.0, 2.0];
        let x = noise(2 * 3 * 5, 4);
        let p = |v: &[f32]| tensor(&[3], v);
        for (channels_last, shape) in [(false, [2, 3, 5]), (true, [2, 5, 3])] {
            let op = BatchNorm {
                epsilon: 1e-3,
                channels_last,
            };
            let inputs = [&tensor(&shape, &x), &p(&s), &p(&b), &p(&m), &p(&v)];
            let y = run_f32(&op, &inputs, &shape);
            let want: Vec<f64> = (0..30)
                .map(|i| {
                    let c = if channels_last { i % 3 } else { i / 5 % 3 };
                    let [s, b, m, v, x] = [s[c], b[c], m[c], v[c], x[i]].map(f64::from);
                    s * (x - m) / (v + f64::from(1e-3f32)).sqrt() + b
                })
                .collect();
            assert_close(&y, &want);
        }
    }

    #[test]
    fn group_norm_has_instance_norm_as_its_limit() {
        let x = tensor(&[2, 4, 3], &noise(24, 5));
        let (s, b) = (tensor(&[4], &noise(4, 6)), tensor(&[4], &noise(4, 7)));
        let instance = run_f32(&InstanceNorm { epsilon: 1e-5 }, &[&x, &s, &b], &[2, 4, 3]);
        let op = GroupNorm {
            groups: 4,
            epsilon: 1e-5,
        };
        assert_eq!(run_f32(&op, &[&x, &s, &b], &[2, 4, 3]), instance);
        let op = GroupNorm {
            groups: 2,
            epsilon: 1e-5,
        };
        let one = tensor(&[4], &[1.0f32; 4]);
        let zero = tensor(&[4], &[0.0f32; 4]);
        let y = run_f32(&op, &[&x, &one, &zero], &[2, 4, 3]);
        for group in y.chunks(6) {
            let (mean, variance) = moments(group.iter().copied());
            assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-3);
        }
    }
}
