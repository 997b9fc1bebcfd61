//! AveragePool and LpPool.

use std::marker::PhantomData;

use bytemuck::Pod;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Activation, AveragePool, LpPool, PoolGeometry};
use kilim_core::{DType, Result};
use kilim_host::elements::BLOCK;
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, by};

use super::windows::Windows;
use crate::by_real;
use crate::common::Real;
use crate::common::real::activate;

pub fn build_average(op: &AveragePool, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let windows = Windows::new(PoolGeometry::new(&op.window, op.channels_last, &x.shape)?)?;
    match x.dtype {
        DType::I8 => return Ok(Box::new(Bytes::<i8>::new(op, windows))),
        DType::U8 => return Ok(Box::new(Bytes::<u8>::new(op, windows))),
        _ => {}
    }
    by_real!(x.dtype, T => Ok(Box::new(Average::<T> {
        windows,
        padded: op.count_include_pad,
        activation: op.activation,
        element: PhantomData,
    })))
}

struct Average<T> {
    windows: Windows,
    /// Padding counts.
    padded: bool,
    activation: Activation,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Average<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, x, y) = (io.cpu(), io.input::<T>(0), io.output::<T>(0));
        let w = &self.windows;
        let deep = w.deep;
        w.run(cpu, by(&mut *y, deep), 1, |window, y, cpu| {
            let y = &mut y[window.row * deep..][..deep];
            let x = &x[window.plane * w.input * deep..];
            w.across(cpu, |part| y[part].fill(T::default()))?;
            w.pixels(cpu, window.place, deep, |i| {
                let x = &x[i * deep..][..deep];
                w.across(cpu, |part| {
                    for (y, &x) in y[part.clone()].iter_mut().zip(&x[part]) {
                        *y += x;
                    }
                })
            })?;
            let count = T::of(w.count(window.place, self.padded) as f64);
            w.across(cpu, |part| y[part].iter_mut().for_each(|y| *y = *y / count))
        })?;
        activate(cpu, self.activation, y)
    }
}

/// Means of 8-bit integers: the quotient is rounded to the nearest, ties away from zero.
struct Bytes<T> {
    windows: Windows,
    padded: bool,
    element: PhantomData<T>,
}

impl<T> Bytes<T> {
    fn new(op: &AveragePool, windows: Windows) -> Bytes<T> {
        Bytes {
            windows,
            padded: op.count_include_pad,
            element: PhantomData,
        }
    }
}

impl<T: Pod + Send + Sync + Into<i32> + TryFrom<i32>> Kernel for Bytes<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, x, y) = (io.cpu(), io.input::<T>(0), io.output::<T>(0));
        let w = &self.windows;
        let deep = w.deep;
        w.run(cpu, by(y, deep), 1, |window, y, cpu| {
            let y = &mut y[window.row * deep..][..deep];
            let x = &x[window.plane * w.input * deep..];
            let count = (w.count(window.place, self.padded) as i32).max(1);
            for (first, y) in (0..deep).step_by(BLOCK).zip(y.chunks_mut(BLOCK)) {
                let mut sums = [0i32; BLOCK];
                w.pixels(cpu, window.place, y.len(), |i| {
                    let x = &x[i * deep + first..][..y.len()];
                    for (sum, &x) in sums.iter_mut().zip(x) {
                        *sum = sum.wrapping_add(x.into());
                    }
                    Ok(())
                })?;
                for (y, &sum) in y.iter_mut().zip(&sums) {
                    let half = if sum > 0 { count / 2 } else { -(count / 2) };
                    // A mean is as large as what it is made of.
                    *y = T::try_from((sum + half) / count).unwrap_or_else(|_| T::zeroed());
                }
            }
            Ok(())
        })
    }
}

pub fn build_lp(op: &LpPool, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let windows = Windows::new(PoolGeometry::new(&op.window, op.channels_last, &x.shape)?)?;
    by_real!(x.dtype, T => Ok(Box::new(Norm::<T> {
        windows,
        p: op.p.into(),
        element: PhantomData,
    })))
}

struct Norm<T> {
    windows: Windows,
    p: f64,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Norm<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, x, y) = (io.cpu(), io.input::<T>(0), io.output::<T>(0));
        let w = &self.windows;
        w.run(cpu, by(y, w.deep), COST, |window, y, cpu| {
            for c in 0..w.deep {
                let mut sum = 0.0;
                w.pixels(cpu, window.place, COST, |i| {
                    let v = x[(window.plane * w.input + i) * w.deep + c].wide().abs();
                    sum += if self.p == 2.0 { v * v } else { v.powf(self.p) };
                    Ok(())
                })?;
                y[window.row * w.deep + c] = T::of(sum.powf(1.0 / self.p));
            }
            Ok(())
        })
    }
}

/// Operations of a power.
const COST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run_as, run_f32};
    use kilim_core::ops::{Padding, Window};
    use kilim_host::testing::tensor;

    fn window(ceil_mode: bool) -> Window {
        Window {
            kernel: vec![2],
            strides: vec![2],
            dilations: vec![],
            padding: Padding::Explicit(vec![1, 0]),
            ceil_mode,
        }
    }

    #[test]
    fn divides_by_what_it_should() {
        let x = tensor::<f32>(&[1, 1, 4], &[2.0, 4.0, 6.0, 9.0]);
        let of = |count_include_pad, ceil_mode, n: usize| {
            let op = AveragePool {
                window: window(ceil_mode),
                count_include_pad,
                channels_last: false,
                activation: Activation::None,
            };
            run_f32(&op, &[&x], &[1, 1, n])
        };
        assert_eq!(of(false, false, 2), [2.0, 5.0]);
        assert_eq!(of(true, false, 2), [1.0, 5.0]);
        // The last window has one element, and no padding behind it to count.
        assert_eq!(of(true, true, 3), [1.0, 5.0, 9.0]);
    }

    #[test]
    fn means_of_bytes_are_rounded_away_from_zero() {
        let x = tensor::<i8>(&[1, 1, 4], &[-1, -2, 1, 2]);
        let op = AveragePool {
            window: window(false),
            count_include_pad: false,
            channels_last: false,
            activation: Activation::None,
        };
        assert_eq!(run_as::<i8>(&op, &[&x], &[1, 1, 2]), [-1, -1]);
        let x = tensor::<u8>(&[1, 1, 4], &[255, 254, 255, 0]);
        assert_eq!(run_as::<u8>(&op, &[&x], &[1, 1, 2]), [255, 255]);
    }

    #[test]
    fn norms() {
        let x = tensor::<f32>(&[1, 1, 4], &[2.0, 3.0, -4.0, 9.0]);
        let op = LpPool {
            window: window(false),
            p: 2,
            channels_last: false,
        };
        assert_eq!(run_f32(&op, &[&x], &[1, 1, 2]), [2.0, 5.0]);
    }
}
