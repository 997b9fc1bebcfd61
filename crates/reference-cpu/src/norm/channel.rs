//! Normalisations with parameters for each channel.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::shape_error;
use kilim_core::ops::{BatchNorm, GroupNorm, InstanceNorm, Lrn};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

use super::moments;
use crate::by_real;
use crate::common::Real;

/// The mean is taken off first: times an infinite slope it could not be any more.
fn line<T: Real>(cpu: &CpuRun, x: &[T], mean: T, slope: T, shift: T, y: &mut [T]) -> Result<()> {
    cpu.pieces(y.len(), 1, |piece| {
        for (y, &x) in y[piece.clone()].iter_mut().zip(&x[piece]) {
            *y = (x - mean) * slope + shift;
        }
        Ok(())
    })
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
            1 if (1..64).contains(&self.channels) => {
                self.channels * 64usize.div_ceil(self.channels)
            }
            _ => self.channels,
        }
    }
}

impl<T: Real> Kernel for Batch<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<T>(0);
        let [scale, bias, mean, variance] = [1, 2, 3, 4].map(|i| io.input::<T>(i));
        let (cpu, period) = (io.cpu(), self.period());
        let (slopes, rest) = io.scratch::<T>(3 * period).split_at_mut(period);
        let (means, shifts) = rest.split_at_mut(period);
        cpu.pieces(period, 8, |piece| {
            for i in piece {
                let c = i % self.channels;
                let slope = scale[c].wide() / (variance[c].wide() + self.epsilon).sqrt();
                (slopes[i], means[i], shifts[i]) = (T::of(slope), mean[c], bias[c]);
            }
            Ok(())
        })?;
        let (slopes, means, shifts) = (&*slopes, &*means, &*shifts);
        let y = io.output::<T>(0);
        if self.plane != 1 {
            let planes = y.len().checked_div(self.plane).unwrap_or(0);
            let outputs = by(y, self.plane);
            return cpu.rows(planes, outputs, self.plane, |piece, y, cpu| {
                for (i, y) in piece.zip(y.chunks_exact_mut(self.plane)) {
                    let c = i % self.channels;
                    let x = &x[i * self.plane..][..self.plane];
                    line(cpu, x, means[c], slopes[c], shifts[c], y)?;
                }
                Ok(())
            });
        }
        let rows = y.len().div_ceil(period.max(1));
        cpu.rows(rows, by(y, period), period, |piece, y, cpu| {
            for (i, y) in piece.zip(y.chunks_mut(period)) {
                let x = &x[i * period..];
                cpu.pieces(y.len(), 1, |part| {
                    let lines = means[part.clone()].iter().zip(&slopes[part.clone()]);
                    let lines = lines.zip(&shifts[part.clone()]);
                    let both = y[part.clone()].iter_mut().zip(&x[part]);
                    for ((y, &x), ((&mean, &slope), &shift)) in both.zip(lines) {
                        *y = (x - mean) * slope + shift;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<T>(self.period().saturating_mul(3))
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
        let cost = size.saturating_mul(4);
        io.cpu()
            .rows(y.len() / size, by(y, size), cost, |piece, y, cpu| {
                for (g, y) in piece.zip(y.chunks_exact_mut(size)) {
                    let x = &x[g * size..][..size];
                    let (mean, variance) = moments(cpu, x)?;
                    let inverse = 1.0 / (variance + self.epsilon).sqrt();
                    let planes = x
                        .chunks_exact(self.plane)
                        .zip(y.chunks_exact_mut(self.plane));
                    for (i, (x, y)) in planes.enumerate() {
                        let c = g % self.groups * deep + i;
                        let slope = T::of(scale[c].wide() * inverse);
                        line(cpu, x, T::of(mean), slope, bias[c], y)?;
                    }
                }
                Ok(())
            })
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
        let most = self.op.size.min(self.channels);
        let cost = most.saturating_mul(2).saturating_add(COST);
        io.cpu().rows(y.len(), by(y, 1), cost, |piece, y, cpu| {
            for (i, y) in piece.zip(y) {
                let (image, at) = (&x[i / size * size..][..size], i % size);
                let (c, p) = (at / self.plane, at % self.plane);
                let first = c.saturating_sub(before);
                let near = first..c.saturating_add(after).saturating_add(1).min(self.channels);
                let mut squares = 0.0;
                cpu.pieces(near.len(), 2, |part| {
                    for n in part {
                        squares += image[(first + n) * self.plane + p].wide().powi(2);
                    }
                    Ok(())
                })?;
                *y = T::of(image[at].wide() / (bias + weight * squares).powf(beta));
            }
            Ok(())
        })
    }
}

/// Operations of a power.
const COST: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_f32;
    use kilim_host::testing::{assert_close, noise, tensor};

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
            let of = |f: &dyn Fn(f32) -> f32| group.iter().map(|&v| f(v)).sum::<f32>() / 6.0;
            let (mean, variance) = (of(&|v| v), of(&|v| v * v));
            assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-3);
        }
    }
}
