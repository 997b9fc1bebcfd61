//! AveragePool and LpPool.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Activation, AveragePool, LpPool, PoolGeometry};

use super::windows::Windows;
use crate::by_real;
use crate::common::Real;
use crate::frame::{Build, Io, Kernel};
use crate::movement::required;

pub fn build_average(op: &AveragePool, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let windows = Windows::new(PoolGeometry::new(&op.window, op.channels_last, &x.shape)?)?;
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
        let (x, y) = (io.input::<T>(0), io.output::<T>(0));
        let w = &self.windows;
        let deep = w.deep;
        for p in 0..w.planes {
            let x = &x[p * w.input * deep..][..w.input * deep];
            let y = &mut y[p * w.output * deep..][..w.output * deep];
            w.each(|o, place| {
                let y = &mut y[o * deep..][..deep];
                y.fill(T::default());
                w.pixels(place, |i| {
                    for (y, &x) in y.iter_mut().zip(&x[i * deep..][..deep]) {
                        *y += x;
                    }
                });
                let count = T::of(w.count(place, self.padded) as f64);
                for y in y {
                    *y = *y / count;
                }
            });
        }
        T::activate(self.activation, y);
        Ok(())
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
        let (x, y) = (io.input::<T>(0), io.output::<T>(0));
        let w = &self.windows;
        for p in 0..w.planes {
            w.each(|o, place| {
                for c in 0..w.deep {
                    let mut sum = 0.0;
                    w.pixels(place, |i| {
                        let v = x[(p * w.input + i) * w.deep + c].wide().abs();
                        sum += if self.p == 2.0 { v * v } else { v.powf(self.p) };
                    });
                    y[(p * w.output + o) * w.deep + c] = T::of(sum.powf(1.0 / self.p));
                }
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{run_f32, tensor};
    use kilim_core::ops::{Padding, Window};

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
