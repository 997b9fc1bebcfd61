//! Normalisations over trailing dimensions, one axis, or given axes.

use std::marker::PhantomData;
use std::ops::Range;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{
    LayerNorm, LpNorm, MeanVarianceNorm, RmsNorm, normalize_axes, normalize_axis,
};
use kilim_host::elements::{Walk, broadcast_strides, contiguous_strides};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use super::moments;
use crate::by_real;
use crate::common::Real;
use crate::reduce::Along;

pub fn build_layer(op: &LayerNorm, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    rows(node, op.axis, op.epsilon, true)
}

pub fn build_rms(op: &RmsNorm, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    rows(node, op.axis, op.epsilon, false)
}

fn rows(node: &NodeSpec, axis: i64, epsilon: f32, centred: bool) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let axis = normalize_axis(axis, x.shape.len())?;
    // Scale and bias broadcast to the whole input: they may vary from row to row too.
    let scale = broadcast_strides(&required(node, 1)?.shape, &x.shape);
    let bias = match node.input(2).filter(|_| centred) {
        Some(spec) => broadcast_strides(&spec.shape, &x.shape),
        None => vec![0; x.shape.len()],
    };
    let outer = Walk::new(&x.shape[..axis], [&scale[..axis], &bias[..axis]]);
    let inner = Walk::new(&x.shape[axis..], [&scale[axis..], &bias[axis..]]);
    by_real!(x.dtype, T => Ok(Box::new(Rows::<T> {
        n: x.shape[axis..].iter().product(),
        epsilon: epsilon.into(),
        centred,
        outer,
        inner,
        element: PhantomData,
    })))
}

struct Rows<T> {
    n: usize,
    epsilon: f64,
    /// The mean is taken off, and a bias added.
    centred: bool,
    outer: Walk<2>,
    inner: Walk<2>,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Rows<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, scale) = (io.input::<T>(0), io.input::<T>(1));
        let bias = self.centred.then(|| io.optional::<T>(2)).flatten();
        let y = io.output::<T>(0);
        let means = io.has_output(1).then(|| by(io.output::<T>(1), 1));
        let inverses = io.has_output(2).then(|| by(io.output::<T>(2), 1));
        let Some(rows) = y.len().checked_div(self.n) else {
            return Ok(());
        };
        let cost = self.n.saturating_mul(4);
        let outputs = (by(y, self.n), (means, inverses));
        io.cpu()
            .rows(rows, outputs, cost, |piece, (y, (means, inverses)), cpu| {
                let mut means = means.into_iter().flatten();
                let mut inverses = inverses.into_iter().flatten();
                let mut lines = x[piece.start * self.n..]
                    .chunks_exact(self.n)
                    .zip(y.chunks_exact_mut(self.n));
                let (_, steps) = self.outer.row();
                self.outer.spans(piece, |span| {
                    let mut at = span.at;
                    for (x, y) in lines.by_ref().take(span.len) {
                        let (mean, inverse) = self.moments(cpu, x)?;
                        if let Some(to) = means.next() {
                            *to = T::of(mean);
                        }
                        if let Some(to) = inverses.next() {
                            *to = T::of(inverse);
                        }
                        let (centre, slope) = (T::of(mean), T::of(inverse));
                        cpu.pieces(self.n, 2, |part| {
                            self.line((x, y), (centre, slope), (scale, bias), at, part)
                        })?;
                        for (at, step) in at.iter_mut().zip(steps) {
                            *at += step;
                        }
                    }
                    Ok(())
                })
            })
    }
}

impl<T: Real> Rows<T> {
    /// The mean of a row, and the inverse of its deviation.
    fn moments(&self, cpu: &CpuRun, x: &[T]) -> Result<(f64, f64)> {
        let (mean, variance) = if self.centred {
            moments(cpu, x)?
        } else {
            let mut squares = 0.0;
            cpu.pieces(x.len(), 1, |part| {
                let parts = x[part].iter().map(|v| v.wide() * v.wide());
                squares = parts.fold(squares, |sum, v| sum + v);
                Ok(())
            })?;
            (0.0, squares / self.n as f64)
        };
        Ok((mean, 1.0 / (variance + self.epsilon).sqrt()))
    }

    /// Part of a row. The row's scale and bias begin at `at`.
    fn line(
        &self,
        (x, y): (&[T], &mut [T]),
        (centre, slope): (T, T),
        (scale, bias): (&[T], Option<&[T]>),
        at: [isize; 2],
        part: Range<usize>,
    ) -> Result<()> {
        let (x, y) = (&x[part.clone()], &mut y[part.clone()]);
        let (_, steps) = self.inner.row();
        self.inner.spans(part, |span| {
            let [s, b] = std::array::from_fn(|t| (at[t] + span.at[t]) as usize);
            let len = span.len;
            let (x, y) = (&x[span.first..][..len], &mut y[span.first..][..len]);
            match (bias, steps) {
                (Some(bias), [1, 1]) => {
                    let parameters = scale[s..s + len].iter().zip(&bias[b..b + len]);
                    for ((y, &x), (&s, &b)) in y.iter_mut().zip(x).zip(parameters) {
                        *y = (x - centre) * slope * s + b;
                    }
                }
                (None, [1, _]) => {
                    for ((y, &x), &s) in y.iter_mut().zip(x).zip(&scale[s..s + len]) {
                        *y = (x - centre) * slope * s;
                    }
                }
                _ => {
                    for (i, (y, &x)) in y.iter_mut().zip(x).enumerate() {
                        let v = (x - centre) * slope * scale[s + i * steps[0] as usize];
                        *y = match bias {
                            Some(bias) => v + bias[b + i * steps[1] as usize],
                            None => v,
                        };
                    }
                }
            }
            Ok(())
        })
    }
}

pub fn build_lp(op: &LpNorm, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let along = Along::new(&x.shape, normalize_axis(op.axis, x.shape.len())?);
    by_real!(x.dtype, T => Ok(Box::new(Lp::<T> {
        p: op.p,
        along,
        element: PhantomData,
    })))
}

struct Lp<T> {
    p: u32,
    along: Along,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Lp<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input::<T>(0), io.output::<T>(0));
        let Along { n, inner, .. } = self.along;
        self.along.lines(io.cpu(), y, 1, COST, |block, i, y, cpu| {
            let x = &x[block * n * inner..];
            let at = |k: usize| k * inner + i;
            let mut sum = 0.0;
            cpu.pieces(n, COST, |part| {
                for k in part {
                    let v = x[at(k)].wide().abs();
                    sum += match self.p {
                        1 => v,
                        2 => v * v,
                        p => v.powf(f64::from(p)),
                    };
                }
                Ok(())
            })?;
            let norm = match self.p {
                1 => sum,
                2 => sum.sqrt(),
                p => sum.powf(1.0 / f64::from(p)),
            };
            cpu.pieces(n, 2, |part| {
                for k in part {
                    // A line of zeros stays one.
                    let v = if norm == 0.0 {
                        0.0
                    } else {
                        x[at(k)].wide() / norm
                    };
                    y[at(k)] = T::of(v);
                }
                Ok(())
            })
        })
    }
}

/// Operations of a power.
const COST: usize = 16;

pub fn build_mean_variance(
    op: &MeanVarianceNorm,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let axes = normalize_axes(&op.axes, x.shape.len())?;
    let strides = contiguous_strides(&x.shape);
    let walk = |reduced: bool| {
        let dims = (0..x.shape.len()).filter(|d| axes.contains(d) == reduced);
        let (shape, strides): (Vec<_>, Vec<_>) = dims.map(|d| (x.shape[d], strides[d])).unzip();
        Walk::new(&shape, [&strides])
    };
    by_real!(x.dtype, T => Ok(Box::new(MeanVariance::<T> {
        kept: walk(false),
        reduced: walk(true),
        element: PhantomData,
    })))
}

struct MeanVariance<T> {
    kept: Walk<1>,
    reduced: Walk<1>,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for MeanVariance<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, x, y) = (io.cpu(), io.input::<T>(0), io.output::<T>(0));
        let (count, (_, [step])) = (self.reduced.len(), self.kept.row());
        let n = count as f64;
        // What is normalised together lies anywhere in the output, so that one goes after the other.
        cpu.pieces(self.kept.len(), count.saturating_mul(6), |piece| {
            self.kept.spans(piece, |span| {
                let mut base = span.at[0];
                for _ in 0..span.len {
                    let (mut sum, mut squares) = (0.0, 0.0);
                    self.each(cpu, base, |i| sum += x[i].wide())?;
                    let mean = sum / n;
                    self.each(cpu, base, |i| squares += (x[i].wide() - mean).powi(2))?;
                    // The specification's function body adds this to the deviation.
                    let deviation = (squares / n).sqrt() + 1e-9;
                    self.each(cpu, base, |i| {
                        y[i] = T::of((x[i].wide() - mean) / deviation)
                    })?;
                    base += step;
                }
                Ok(())
            })
        })
    }
}

impl<T> MeanVariance<T> {
    /// Calls `f` with each element that is normalised together with the one at `base`.
    fn each(&self, cpu: &CpuRun, base: isize, mut f: impl FnMut(usize)) -> Result<()> {
        let (_, [step]) = self.reduced.row();
        cpu.pieces(self.reduced.len(), 2, |piece| {
            self.reduced.spans(piece, |span| {
                let mut at = base + span.at[0];
                for _ in 0..span.len {
                    f(at as usize);
                    at += step;
                }
                Ok(())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_f32};
    use kilim_core::DType;
    use kilim_host::testing::{assert_close, noise, tensor};

    #[test]
    fn layer_norm_with_its_statistics() {
        let x = noise(2 * 3 * 7, 1);
        let (s, b) = (noise(7, 2), noise(7, 3));
        let op = LayerNorm {
            axis: -1,
            epsilon: 1e-5,
        };
        let out = run(
            &op,
            &[
                Some(&tensor(&[2, 3, 7], &x)),
                Some(&tensor(&[7], &s)),
                Some(&tensor(&[7], &b)),
            ],
            &[
                (DType::F32, &[2, 3, 7]),
                (DType::F32, &[2, 3, 1]),
                (DType::F32, &[2, 3, 1]),
            ],
        )
        .unwrap();
        let (mut want, mut means) = (Vec::new(), Vec::new());
        for row in x.chunks(7) {
            let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / 7.0;
            let var = row
                .iter()
                .map(|&v| (f64::from(v) - mean).powi(2))
                .sum::<f64>()
                / 7.0;
            means.push(mean);
            for (i, &v) in row.iter().enumerate() {
                let y = (f64::from(v) - mean) / (var + 1e-5).sqrt();
                want.push(y * f64::from(s[i]) + f64::from(b[i]));
            }
        }
        assert_close(out[0].as_slice().unwrap(), &want);
        assert_close(out[1].as_slice().unwrap(), &means);
    }

    #[test]
    fn norms_of_lines() {
        let x = tensor(&[2, 2], &[3.0f32, 0.0, 4.0, 0.0]);
        let of = |p, axis| run_f32(&LpNorm { axis, p }, &[&x], &[2, 2]);
        assert_close(&of(2, 0), &[0.6, 0.0, 0.8, 0.0]);
        assert_close(&of(1, 0), &[3.0 / 7.0, 0.0, 4.0 / 7.0, 0.0]);
    }
}
