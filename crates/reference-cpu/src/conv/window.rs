//! The loops of a convolution and of its transpose, over any number of spatial axes. One side is
//! walked densely, the other by windows: element `i` of the dense side and kernel position `k` meet
//! at `i * stride + k * dilation - begin` of the windowed side. A convolution's dense side is its
//! output; a transposed one's is its input.

use kilim_core::Result;
use kilim_core::ops::{ConvGeometry, WindowAxis};
use kilim_host::elements::contiguous_strides;
use kilim_host::{CpuRun, by};

use crate::common::Ring;

/// Which side of the loops is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Convolution: the dense side.
    Gather,
    /// Transposed convolution: the windowed side.
    Scatter,
}

#[derive(Clone, Copy)]
struct Axis {
    dense: usize,
    windowed: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    begin: usize,
    dense_step: usize,
    windowed_step: usize,
    weight_step: usize,
}

impl Axis {
    /// The dense elements whose kernel position `k` lies inside of the windowed side.
    fn meets(&self, k: usize) -> std::ops::Range<usize> {
        let shift = k * self.dilation;
        let first = self.begin.saturating_sub(shift).div_ceil(self.stride);
        let room = (self.windowed + self.begin).saturating_sub(shift);
        let last = room.div_ceil(self.stride).min(self.dense);
        first.min(last)..last
    }

    /// Where dense element `i` meets position `k`.
    fn at(&self, i: usize, k: usize) -> usize {
        i * self.stride + k * self.dilation - self.begin
    }
}

/// A convolution resolved down to strides.
pub struct Loops {
    direction: Direction,
    batch: usize,
    groups: usize,
    /// Input channels of each group; `out_channels` are the output channels of each.
    in_channels: usize,
    out_channels: usize,
    /// Distance of images and of channels.
    input: (usize, usize),
    output: (usize, usize),
    axes: Vec<Axis>,
    taps: usize,
}

impl Loops {
    pub fn new(direction: Direction, geometry: &ConvGeometry) -> Loops {
        let place = |channels: usize, extents: Vec<usize>| {
            let plane: usize = extents.iter().product();
            let steps = contiguous_strides(&extents);
            let (channel, pixel) = match geometry.channels_last {
                true => (1, channels),
                false => (plane, 1),
            };
            let steps: Vec<usize> = steps.iter().map(|&s| s as usize * pixel).collect();
            ((plane * channels, channel), steps)
        };
        let extent = |f: fn(&WindowAxis) -> usize| geometry.axes.iter().map(f).collect::<Vec<_>>();
        let (input, input_steps) = place(geometry.in_channels, extent(|a| a.input));
        let (output, output_steps) = place(geometry.out_channels, extent(|a| a.output));
        let kernel = extent(|a| a.kernel);
        let weight_steps = contiguous_strides(&kernel);
        let axes = geometry
            .axes
            .iter()
            .enumerate()
            .map(|(d, a)| {
                let (dense, windowed, dense_step, windowed_step) = match direction {
                    Direction::Gather => (a.output, a.input, output_steps[d], input_steps[d]),
                    Direction::Scatter => (a.input, a.output, input_steps[d], output_steps[d]),
                };
                Axis {
                    dense,
                    windowed,
                    kernel: a.kernel,
                    stride: a.stride,
                    dilation: a.dilation,
                    begin: a.begin,
                    dense_step,
                    windowed_step,
                    weight_step: weight_steps[d] as usize,
                }
            })
            .collect();
        Loops {
            direction,
            batch: geometry.batch,
            groups: geometry.groups,
            in_channels: geometry.in_channels / geometry.groups.max(1),
            out_channels: geometry.out_channels / geometry.groups.max(1),
            input,
            output,
            axes,
            taps: kernel.iter().product(),
        }
    }

    /// Adds the convolution of `x` with `w` to `y`. Weights are `[m, c / groups, kernel..]`, for the
    /// transposed `[c, m / groups, kernel..]`.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn run<T: Ring>(&self, cpu: &CpuRun, x: &[T], w: &[T], y: &mut [T]) -> Result<()> {
        let channels = self.groups * self.out_channels;
        let ((image, channel), dense) = (self.output, self.axes.iter().map(|a| a.dense));
        let dense = dense.fold(1, usize::saturating_mul);
        let cost = dense.saturating_mul(self.taps);
        let cost = cost.saturating_mul(self.in_channels);
        if channel == 1 {
            // The channels of an image are interlaced.
            let cost = cost.saturating_mul(channels);
            return cpu.rows(self.batch, by(y, image), cost, |piece, y, cpu| {
                for (n, y) in piece.zip(y.chunks_exact_mut(image.max(1))) {
                    for m in 0..channels {
                        self.channel(cpu, (n, m), x, w, &mut y[m..])?;
                    }
                }
                Ok(())
            });
        }
        let planes = self.batch * channels;
        cpu.rows(planes, by(y, channel), cost, |piece, y, cpu| {
            for (plane, y) in piece.zip(y.chunks_exact_mut(channel.max(1))) {
                self.channel(cpu, (plane / channels, plane % channels), x, w, y)?;
            }
            Ok(())
        })
    }

    /// Channel `m` of image `n`, from its first element on.
    fn channel<T: Ring>(
        &self,
        cpu: &CpuRun,
        (n, m): (usize, usize),
        x: &[T],
        w: &[T],
        y: &mut [T],
    ) -> Result<()> {
        let (ci, co) = (self.in_channels, self.out_channels);
        let (g, m) = (m / co, m % co);
        for c in 0..ci {
            let x = &x[n * self.input.0 + (g * ci + c) * self.input.1..];
            let filter = match self.direction {
                Direction::Gather => (g * co + m) * ci + c,
                Direction::Scatter => (g * ci + c) * co + m,
            };
            let w = &w[filter * self.taps..][..self.taps];
            self.nest(cpu, &self.axes, (w, x, y), 0, 0)?;
        }
        Ok(())
    }

    fn nest<T: Ring>(
        &self,
        cpu: &CpuRun,
        axes: &[Axis],
        (w, x, y): (&[T], &[T], &mut [T]),
        dense: usize,
        windowed: usize,
    ) -> Result<()> {
        let Some((axis, inner)) = axes.split_first() else {
            let (to, from) = match self.direction {
                Direction::Gather => (dense, windowed),
                Direction::Scatter => (windowed, dense),
            };
            y[to] = y[to].plus(x[from].times(w[0]));
            return cpu.spend(1);
        };
        for k in 0..axis.kernel {
            let range = axis.meets(k);
            cpu.spend(1)?;
            if range.is_empty() {
                continue;
            }
            if inner.is_empty() {
                let step = axis.stride * axis.windowed_step;
                let at = windowed + axis.at(range.start, k) * axis.windowed_step;
                let from = dense + range.start * axis.dense_step;
                cpu.pieces(range.len(), 1, |piece| {
                    let line = (piece.len(), w[k]);
                    let (at, from) = (
                        at + piece.start * step,
                        from + piece.start * axis.dense_step,
                    );
                    match self.direction {
                        Direction::Gather => {
                            row(line, (&x[at..], step), (&mut y[from..], axis.dense_step));
                        }
                        Direction::Scatter => {
                            row(line, (&x[from..], axis.dense_step), (&mut y[at..], step));
                        }
                    }
                    Ok(())
                })?;
                continue;
            }
            let w = &w[k * axis.weight_step..];
            for i in range {
                let dense = dense + i * axis.dense_step;
                let windowed = windowed + axis.at(i, k) * axis.windowed_step;
                self.nest(cpu, inner, (w, x, y), dense, windowed)?;
            }
        }
        Ok(())
    }
}

/// `y += w * x` along a line.
fn row<T: Ring>((n, w): (usize, T), (x, from): (&[T], usize), (y, to): (&mut [T], usize)) {
    if from == 1 && to == 1 {
        for (y, &x) in y[..n].iter_mut().zip(x) {
            *y = y.plus(x.times(w));
        }
    } else {
        for i in 0..n {
            y[i * to] = y[i * to].plus(x[i * from].times(w));
        }
    }
}
