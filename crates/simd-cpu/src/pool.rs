//! Max and average pooling of channels-last data.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, AveragePool, MaxPool, PoolGeometry};
use kilim_core::{DType, Result};

use super::isa::{Isa, Simd, Task, read, write};
use super::math;
use super::window::Window;
use kilim_host::registry::KernelRegistry;
use kilim_host::{CpuRun, Io, Kernel, by};

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<MaxPool>(
        |op, node| {
            if node.outputs.len() > 1 {
                return Err(Refusal::new("the SIMD pooling: indices"));
            }
            accepts(node, Pool::max(op, node, Isa::best()))
        },
        |op, node, _| boxed(Pool::max(op, node, Isa::best())),
    );
    registry.add::<AveragePool>(
        |op, node| accepts(node, Pool::average(op, node, Isa::best())),
        |op, node, _| boxed(Pool::average(op, node, Isa::best())),
    );
}

fn accepts(node: &NodeSpec, pool: Option<Pool>) -> Result<(), Refusal> {
    match (node.input(0), pool) {
        (Some(x), Some(_)) if x.dtype == DType::F32 => Ok(()),
        _ => Err(Refusal::new(
            "the SIMD pooling: not float32, not channels-last, more than two axes, or empty",
        )),
    }
}

fn boxed(pool: Option<Pool>) -> Result<Box<dyn Kernel>> {
    let pool = pool.ok_or_else(|| unsupported("pooling of these shapes"))?;
    Ok(Box::new(pool))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Max,
    /// Padding counts in the divisor.
    Average {
        padding_counts: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Pool {
    isa: Isa,
    kind: Kind,
    window: Window,
    activation: Activation,
}

impl Pool {
    pub(crate) fn max(op: &MaxPool, node: &NodeSpec, isa: Isa) -> Option<Pool> {
        let geometry =
            PoolGeometry::new(&op.window, op.channels_last, &node.input(0)?.shape).ok()?;
        Pool::new(isa, Kind::Max, &geometry, Activation::None)
    }

    pub(crate) fn average(op: &AveragePool, node: &NodeSpec, isa: Isa) -> Option<Pool> {
        let geometry =
            PoolGeometry::new(&op.window, op.channels_last, &node.input(0)?.shape).ok()?;
        let kind = Kind::Average {
            padding_counts: op.count_include_pad,
        };
        Pool::new(isa, kind, &geometry, op.activation)
    }

    fn new(isa: Isa, kind: Kind, g: &PoolGeometry, activation: Activation) -> Option<Pool> {
        g.channels_last.then_some(())?;
        Some(Pool {
            isa,
            kind,
            window: Window::new(g.batch, g.channels, &g.axes)?,
            activation,
        })
    }
}

impl Kernel for Pool {
    fn run(&self, io: &mut Io) -> Result<()> {
        let input: &[f32] = io.input(0);
        let output: &mut [f32] = io.output(0);
        let w = &self.window;
        let (rows, size) = (w.batch * w.y.output, w.x.output * w.channels);
        // Two vectors take about as long as an operation.
        let taps = w.y.kernel.saturating_mul(w.x.kernel);
        let cost = size.saturating_mul(taps) / (2 * self.isa.lanes());
        io.cpu()
            .rows(rows, by(output, size), cost, |piece, output, cpu| {
                for (row, out) in piece.zip(output.chunks_exact_mut(size)) {
                    self.isa.dispatch(Row {
                        cpu,
                        pool: self,
                        image: &input[row / w.y.output * w.image()..][..w.image()],
                        out: &mut *out,
                        y: row % w.y.output,
                    })?;
                    math::activate(cpu, self.isa, self.activation, out)?;
                }
                Ok(())
            })
    }
}

/// One row of the output.
struct Row<'a> {
    cpu: &'a CpuRun<'a>,
    pool: &'a Pool,
    image: &'a [f32],
    out: &'a mut [f32],
    /// The row in its image.
    y: usize,
}

impl Task for Row<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Result<()> {
        let w = &self.pool.window;
        let c = w.channels;
        assert!(self.image.len() == w.image() && self.out.len() == w.x.output * c);
        let out = self.out.as_mut_ptr();
        let rows = w.y.taps(self.y);
        for x in 0..w.x.output {
            let columns = w.x.taps(x);
            let scale = match self.pool.kind {
                Kind::Max => 1.0,
                Kind::Average {
                    padding_counts: true,
                } => 1.0 / (w.y.padded_taps(self.y) * w.x.padded_taps(x)) as f32,
                Kind::Average { .. } => 1.0 / (rows.len() * columns.len()) as f32,
            };
            // A window without taps may lie behind the image.
            let first = if rows.is_empty() || columns.is_empty() {
                0
            } else {
                let y = self.y * w.y.stride + rows.start * w.y.dilation - w.y.begin;
                let x = x * w.x.stride + columns.start * w.x.dilation - w.x.begin;
                y * w.x.input + x
            };
            let count = rows.len() * columns.len();
            self.cpu.spend(count.saturating_mul(c))?;
            let taps = Taps {
                from: self.image[first * c..].as_ptr(),
                rows: rows.len(),
                columns: columns.len(),
                row_step: w.y.dilation * w.x.input * c,
                column_step: w.x.dilation * c,
                scale,
            };
            let mut channel = 0;
            while channel < c {
                let left = c - channel;
                // SAFETY: the taps are inside of the image, the pixel is inside of the row.
                channel += unsafe {
                    let out = out.add(x * c + channel);
                    if left >= TOGETHER * S::LANES {
                        self.vectors::<S, TOGETHER, true>(s, &taps, channel, S::LANES, out)?
                    } else if left >= S::LANES {
                        self.vectors::<S, 1, true>(s, &taps, channel, S::LANES, out)?
                    } else {
                        self.vectors::<S, 1, false>(s, &taps, channel, left, out)?
                    }
                };
            }
        }
        Ok(())
    }
}

/// Vectors of channels that are computed together: none waits for the one before.
const TOGETHER: usize = 4;

/// Taps of a window that are counted by themselves for each vector of channels.
const MANY: usize = 4096;

/// What a window sees of the image.
struct Taps {
    /// The first pixel.
    from: *const f32,
    rows: usize,
    columns: usize,
    /// Elements from a row to the next, and from a column.
    row_step: usize,
    column_step: usize,
    /// Multiplies a sum.
    scale: f32,
}

impl Row<'_> {
    /// Computes vectors of `count` channels each, and gives their channels.
    ///
    /// # Safety
    /// The taps' pixels and `out` are good for so many channels from `channel` on; `count` is a vector's if `FULL`, as it is where
    /// there are several.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const N: usize, const FULL: bool>(
        &self,
        s: S,
        taps: &Taps,
        channel: usize,
        count: usize,
        out: *mut f32,
    ) -> Result<usize> {
        let many = taps.rows.saturating_mul(taps.columns) > MANY;
        let max = self.pool.kind == Kind::Max;
        let mut acc = [s.splat(if max { f32::NEG_INFINITY } else { 0.0 }); N];
        for y in 0..taps.rows {
            if many {
                self.cpu.spend(taps.columns)?;
            }
            for x in 0..taps.columns {
                let at = y * taps.row_step + x * taps.column_step + channel;
                for (i, acc) in acc.iter_mut().enumerate() {
                    // SAFETY: the pixels of all taps have the channels by the contract.
                    let v = unsafe { read::<S, FULL>(s, taps.from.add(at + i * S::LANES), count) };
                    *acc = if max {
                        // `max` keeps a NaN that it was given before.
                        s.select(s.is_nan(v), v, s.max(*acc, v))
                    } else {
                        s.add(*acc, v)
                    };
                }
            }
        }
        for (i, mut acc) in acc.into_iter().enumerate() {
            if !max {
                acc = s.mul(acc, s.splat(taps.scale));
            }
            // SAFETY: `out` is good for the channels by the contract.
            unsafe { write::<S, FULL>(s, out.add(i * S::LANES), acc, count) }
        }
        Ok(N * count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use crate::testing::{assert_within, run_kernel};
    use kilim_core::ops::{Padding, Window as PoolWindow};
    use kilim_host::testing::{noise, tensor};

    /// Channels-last pooling by its definition.
    fn reference(x: &[f32], g: &PoolGeometry, kind: Kind) -> Vec<f64> {
        let [ya, xa] = [g.axes[0], g.axes[1]];
        let mut out = Vec::new();
        for i in 0..g.batch * ya.output * xa.output * g.channels {
            let (rest, c) = (i / g.channels, i % g.channels);
            let (rest, ox) = (rest / xa.output, rest % xa.output);
            let (n, oy) = (rest / ya.output, rest % ya.output);
            let (mut sum, mut most, mut inside, mut padded) = (0.0, f64::NEG_INFINITY, 0, 0);
            for (ky, kx) in (0..ya.kernel * xa.kernel).map(|k| (k / xa.kernel, k % xa.kernel)) {
                let y = (oy * ya.stride + ky * ya.dilation) as isize - ya.begin as isize;
                let x_at = (ox * xa.stride + kx * xa.dilation) as isize - xa.begin as isize;
                let within = |v: isize, a: &kilim_core::ops::WindowAxis, end: usize| {
                    v < (a.input + end) as isize
                };
                padded += usize::from(within(y, &ya, ya.end) && within(x_at, &xa, xa.end));
                if y < 0 || x_at < 0 || !within(y, &ya, 0) || !within(x_at, &xa, 0) {
                    continue;
                }
                inside += 1;
                let at = (n * ya.input + y as usize) * xa.input + x_at as usize;
                let v = f64::from(x[at * g.channels + c]);
                sum += v;
                most = if v.is_nan() || v > most { v } else { most };
            }
            out.push(match kind {
                Kind::Max => most,
                Kind::Average {
                    padding_counts: true,
                } => sum / padded as f64,
                Kind::Average { .. } => sum / inside as f64,
            });
        }
        out
    }

    #[test]
    fn windows() {
        let same = |k: usize, s: usize, p: usize| (vec![k; 2], vec![s; 2], vec![1; 2], vec![p; 4]);
        let geometries = [
            same(3, 2, 0),
            same(3, 2, 1),
            same(2, 2, 0),
            same(3, 1, 1),
            (vec![2, 3], vec![1, 2], vec![2, 1], vec![0, 1, 1, 0]),
            (vec![5, 1], vec![3, 1], vec![1, 1], vec![2, 0, 2, 0]),
        ];
        for (kernel, strides, dilations, pads) in geometries {
            for ceil_mode in [false, true] {
                for channels in [1, 3, 4, 8, 16, 21, 32, 85] {
                    let window = PoolWindow {
                        kernel: kernel.clone(),
                        strides: strides.clone(),
                        dilations: dilations.clone(),
                        padding: Padding::Explicit(pads.clone()),
                        ceil_mode,
                    };
                    let data = noise(2 * 9 * 11 * channels, 7);
                    check(&window, channels, &data);
                    let mut holed = data;
                    holed.iter_mut().step_by(17).for_each(|x| *x = f32::NAN);
                    check(&window, channels, &holed);
                }
            }
        }
    }

    fn check(window: &PoolWindow, channels: usize, data: &[f32]) {
        let shape = [2, 9, 11, channels];
        let g = PoolGeometry::new(window, true, &shape).expect("a geometry");
        let x = tensor(&shape, data);
        for isa in Isa::available() {
            for kind in [
                Kind::Max,
                Kind::Average {
                    padding_counts: false,
                },
                Kind::Average {
                    padding_counts: true,
                },
            ] {
                let op = MaxPool {
                    window: window.clone(),
                    column_major: false,
                    channels_last: true,
                };
                let got = run_kernel(&op, &[Some(&x)], &g.output_shape(), |_, _| {
                    boxed(Pool::new(isa, kind, &g, Activation::None))
                });
                let want = reference(data, &g, kind);
                assert_within(
                    &got,
                    &want,
                    1e-6,
                    &format!("{window:?} {channels} {kind:?} {isa:?}"),
                );
            }
        }
    }
}
