//! Conv and ConvTranspose.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Activation, Conv, ConvGeometry, ConvTranspose};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use super::window::{Direction, Loops};
use crate::by_real;
use crate::common::real::activate;
use crate::common::{Real, Ring};

/// The loops of a convolution.
pub fn conv_loops(op: &Conv, x: &[usize], w: &[usize]) -> Result<(Loops, Channels)> {
    let g = ConvGeometry::new(op, x, w)?;
    Ok((Loops::new(Direction::Gather, &g), Channels::of(&g)))
}

/// Where the channels of an output are.
#[derive(Clone, Copy)]
pub struct Channels {
    pub count: usize,
    /// Neighbours of one channel.
    pub run: usize,
}

impl Channels {
    fn of(g: &ConvGeometry) -> Channels {
        let plane = g.axes.iter().map(|a| a.output).product();
        Channels {
            count: g.out_channels,
            run: if g.channels_last { 1 } else { plane },
        }
    }

    /// Fills `y` with a value for each channel.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn fill<T: Ring>(&self, cpu: &CpuRun, y: &mut [T], values: &[T]) -> Result<()> {
        let (run, count) = (self.run.max(1), self.count.max(1));
        cpu.rows(y.len() / run, by(y, run), run, |piece, y, cpu| {
            for (i, y) in piece.zip(y.chunks_exact_mut(run)) {
                cpu.fill(y, values[i % count])?;
            }
            Ok(())
        })
    }
}

pub fn build_conv(op: &Conv, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (x, w) = (required(node, 0)?, required(node, 1)?);
    let (loops, channels) = conv_loops(op, &x.shape, &w.shape)?;
    by_real!(x.dtype, T => Ok(Box::new(Floating::<T> {
        loops,
        channels,
        activation: op.activation,
        element: PhantomData,
    })))
}

pub fn build_transpose(
    op: &ConvTranspose,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (x, w) = (required(node, 0)?, required(node, 1)?);
    let g = ConvGeometry::transposed(op, &x.shape, &w.shape)?;
    by_real!(x.dtype, T => Ok(Box::new(Floating::<T> {
        loops: Loops::new(Direction::Scatter, &g),
        channels: Channels::of(&g),
        activation: op.activation,
        element: PhantomData,
    })))
}

struct Floating<T> {
    loops: Loops,
    channels: Channels,
    activation: Activation,
    element: PhantomData<T>,
}

impl<T: Real + Ring> Kernel for Floating<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, y) = (io.cpu(), io.output::<T>(0));
        match io.optional::<T>(2) {
            Some(bias) => self.channels.fill(cpu, y, bias)?,
            None => cpu.fill(y, T::ZERO)?,
        }
        self.loops.run(cpu, io.input(0), io.input(1), y)?;
        if let Some(residual) = io.optional::<T>(3) {
            cpu.rows(y.len(), by(y, 1), 1, |piece, y, _| {
                for (y, &r) in y.iter_mut().zip(&residual[piece]) {
                    *y += r;
                }
                Ok(())
            })?;
        }
        activate(cpu, self.activation, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_f32;
    use kilim_core::ops::Padding;
    use kilim_host::testing::{assert_close, noise, tensor};

    /// `[n, c, h, w]` to `[n, h, w, c]`.
    fn last<T: Copy>(x: &[T], [n, c, h, w]: [usize; 4]) -> Vec<T> {
        (0..x.len())
            .map(|i| {
                let (ch, rest) = (i % c, i / c);
                let (px, b) = (rest % (h * w), rest / (h * w));
                debug_assert!(b < n);
                x[(b * c + ch) * h * w + px]
            })
            .collect()
    }

    struct Case {
        stride: usize,
        dilation: usize,
        groups: usize,
        pads: [usize; 4],
    }

    const CASES: [Case; 4] = [
        Case {
            stride: 1,
            dilation: 1,
            groups: 1,
            pads: [0; 4],
        },
        Case {
            stride: 2,
            dilation: 1,
            groups: 2,
            pads: [1, 0, 1, 2],
        },
        Case {
            stride: 3,
            dilation: 2,
            groups: 1,
            pads: [2, 2, 2, 2],
        },
        Case {
            stride: 1,
            dilation: 2,
            groups: 4,
            pads: [0, 3, 1, 0],
        },
    ];

    #[test]
    fn convolutions_in_both_layouts() {
        let (n, c, m, h, w) = (2, 4, 8, 9, 7);
        for case in CASES {
            let cg = c / case.groups;
            let x = noise(n * c * h * w, 1);
            let f = noise(m * cg * 9, 2);
            let b = noise(m, 3);
            let extent = 2 * case.dilation + 1;
            let oh = (h + case.pads[0] + case.pads[2] - extent) / case.stride + 1;
            let ow = (w + case.pads[1] + case.pads[3] - extent) / case.stride + 1;
            let mut want = Vec::new();
            for i in 0..n * m * oh * ow {
                let (ox, oy) = (i % ow, i / ow % oh);
                let (k, b_) = (i / (ow * oh) % m, i / (ow * oh * m));
                let mut sum = f64::from(b[k]);
                for ci in 0..cg {
                    let ch = k / (m / case.groups) * cg + ci;
                    for t in 0..9 {
                        let y =
                            (oy * case.stride + t / 3 * case.dilation).wrapping_sub(case.pads[0]);
                        let xx =
                            (ox * case.stride + t % 3 * case.dilation).wrapping_sub(case.pads[1]);
                        if y < h && xx < w {
                            let v = x[((b_ * c + ch) * h + y) * w + xx];
                            sum += f64::from(v) * f64::from(f[(k * cg + ci) * 9 + t]);
                        }
                    }
                }
                want.push(sum);
            }
            for channels_last in [false, true] {
                let op = Conv {
                    strides: vec![case.stride; 2],
                    dilations: vec![case.dilation; 2],
                    padding: Padding::Explicit(case.pads.to_vec()),
                    groups: case.groups,
                    channels_last,
                    activation: Activation::None,
                };
                let (wt, bt) = (tensor(&[m, cg, 3, 3], &f), tensor(&[m], &b));
                if channels_last {
                    let x = tensor(&[n, h, w, c], &last(&x, [n, c, h, w]));
                    let y = run_f32(&op, &[&x, &wt, &bt], &[n, oh, ow, m]);
                    assert_close(&y, &last(&want, [n, m, oh, ow]));
                } else {
                    let x = tensor(&[n, c, h, w], &x);
                    let y = run_f32(&op, &[&x, &wt, &bt], &[n, m, oh, ow]);
                    assert_close(&y, &want);
                }
            }
        }
    }

    #[test]
    fn one_and_three_dimensions() {
        let op = || Conv {
            strides: vec![],
            dilations: vec![],
            padding: Padding::SameUpper,
            groups: 1,
            channels_last: false,
            activation: Activation::Relu,
        };
        let x = tensor(&[1, 1, 4], &[1.0f32, 2.0, -3.0, 4.0]);
        let w = tensor(&[1, 1, 2], &[1.0f32, 1.0]);
        assert_eq!(run_f32(&op(), &[&x, &w], &[1, 1, 4]), [3.0, 0.0, 1.0, 4.0]);
        let x = tensor(&[1, 1, 2, 2, 2], &[1.0f32; 8]);
        let w = tensor(&[1, 1, 2, 2, 2], &[1.0f32; 8]);
        let y = run_f32(&op(), &[&x, &w], &[1, 1, 2, 2, 2]);
        assert_eq!(y, [8.0, 4.0, 4.0, 2.0, 4.0, 2.0, 2.0, 1.0]);
    }

    #[test]
    fn the_transpose_is_the_adjoint() {
        // <conv(x), y> = <x, conv_transpose(y)> for every x and y.
        for case in CASES {
            let (c, m, h, w) = (4, 8, 9, 8);
            let conv = Conv {
                strides: vec![case.stride; 2],
                dilations: vec![case.dilation; 2],
                padding: Padding::Explicit(case.pads.to_vec()),
                groups: case.groups,
                channels_last: false,
                activation: Activation::None,
            };
            let cg = c / case.groups;
            let wt = tensor(&[m, cg, 3, 3], &noise(m * cg * 9, 2));
            let g = ConvGeometry::new(&conv, &[1, c, h, w], wt.shape()).unwrap();
            let out = g.output_shape();
            let x = noise(c * h * w, 3);
            let y = noise(out.iter().product(), 4);
            let forward = run_f32(&conv, &[&tensor(&[1, c, h, w], &x), &wt], &out);
            let extra: Vec<usize> = g
                .axes
                .iter()
                .map(|a| a.input + a.begin + a.end - ((a.output - 1) * a.stride + a.extent()))
                .collect();
            let back = ConvTranspose {
                strides: conv.strides.clone(),
                dilations: conv.dilations.clone(),
                padding: conv.padding.clone(),
                output_padding: extra,
                output_shape: None,
                groups: case.groups,
                channels_last: false,
                activation: Activation::None,
            };
            let backward = run_f32(&back, &[&tensor(&out, &y), &wt], &[1, c, h, w]);
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter()
                    .zip(b)
                    .map(|(a, b)| f64::from(*a) * f64::from(*b))
                    .sum()
            };
            let (left, right) = (dot(&forward, &y), dot(&x, &backward));
            assert!(
                (left - right).abs() < 1e-4 * left.abs().max(1.0),
                "{left} {right}"
            );
        }
    }
}
