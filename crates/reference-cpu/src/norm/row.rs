//! Normalisations over trailing dimensions, one axis, or given axes.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{
    LayerNorm, LpNorm, MeanVarianceNorm, RmsNorm, normalize_axes, normalize_axis,
};

use super::moments;
use crate::by_real;
use crate::common::rules::required;
use crate::common::{Real, Walk, broadcast_strides, contiguous_strides};
use crate::frame::{Build, Io, Kernel};
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
    let bias = match node.input(2) {
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
    /// The mean is taken off.
    centred: bool,
    outer: Walk<2>,
    inner: Walk<2>,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Rows<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, scale) = (io.input::<T>(0), io.input::<T>(1));
        let bias = io.optional::<T>(2);
        let y = io.output::<T>(0);
        let mut means = io.has_output(1).then(|| io.output::<T>(1));
        let mut inverses = io.has_output(2).then(|| io.output::<T>(2));
        if self.n == 0 {
            return Ok(());
        }
        let mut rows = x.chunks_exact(self.n).zip(y.chunks_exact_mut(self.n));
        let mut row = 0;
        let (len, steps) = self.inner.row();
        self.outer.elements(|[at_scale, at_bias]| {
            let Some((x, y)) = rows.next() else { return };
            let (mean, variance) = if self.centred {
                moments(x.iter().copied())
            } else {
                let squares: f64 = x.iter().map(|v| v.wide() * v.wide()).sum();
                (0.0, squares / self.n as f64)
            };
            let inverse = 1.0 / (variance + self.epsilon).sqrt();
            if let Some(m) = means.as_deref_mut().and_then(|m| m.get_mut(row)) {
                *m = T::of(mean);
            }
            if let Some(i) = inverses.as_deref_mut().and_then(|i| i.get_mut(row)) {
                *i = T::of(inverse);
            }
            row += 1;
            let (centre, slope) = (T::of(mean), T::of(inverse));
            let mut done = 0;
            self.inner.rows(|[s, b]| {
                let (s, b) = ((at_scale + s) as usize, (at_bias + b) as usize);
                let (x, y) = (&x[done..done + len], &mut y[done..done + len]);
                done += len;
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
            });
        });
        Ok(())
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
        self.along.lines(|first| {
            let line = (0..n).map(|i| first + i * inner);
            let norm = match self.p {
                1 => line.clone().map(|i| x[i].wide().abs()).sum(),
                2 => line
                    .clone()
                    .map(|i| x[i].wide() * x[i].wide())
                    .sum::<f64>()
                    .sqrt(),
                p => {
                    let p = f64::from(p);
                    let sum: f64 = line.clone().map(|i| x[i].wide().abs().powf(p)).sum();
                    sum.powf(1.0 / p)
                }
            };
            for i in line {
                // A line of zeros stays one.
                y[i] = T::of(if norm == 0.0 { 0.0 } else { x[i].wide() / norm });
            }
        });
        Ok(())
    }
}

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
        let (x, y) = (io.input::<T>(0), io.output::<T>(0));
        self.kept.elements(|[base]| {
            let (mut n, mut sum, mut squares) = (0.0f64, 0.0, 0.0);
            self.reduced.elements(|[r]| {
                sum += x[(base + r) as usize].wide();
                n += 1.0;
            });
            let mean = sum / n;
            self.reduced.elements(|[r]| {
                squares += (x[(base + r) as usize].wide() - mean).powi(2);
            });
            // The specification's function body adds this to the deviation.
            let deviation = (squares / n).sqrt() + 1e-9;
            self.reduced.elements(|[r]| {
                let at = (base + r) as usize;
                y[at] = T::of((x[at].wide() - mean) / deviation);
            });
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{assert_close, noise, run, run_f32, tensor};
    use kilim_core::DType;

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
