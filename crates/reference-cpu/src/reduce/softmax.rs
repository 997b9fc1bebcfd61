//! Softmax, LogSoftmax and Hardmax along one axis.

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Softmax, SoftmaxKind, normalize_axis};
use kilim_core::{DType, Result};

use super::Along;
use crate::common::rules::required;
use crate::common::{Codec, Wide};
use crate::frame::{Build, Io, Kernel};

pub fn build(op: &Softmax, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let along = Along::new(&x.shape, normalize_axis(op.axis, x.shape.len())?);
    if x.dtype == DType::F32 && op.kind != SoftmaxKind::Hardmax {
        return Ok(Box::new(F32 {
            log: op.kind == SoftmaxKind::LogSoftmax,
            beta: op.beta,
            along,
        }));
    }
    Ok(Box::new(Generic {
        kind: op.kind,
        beta: op.beta.into(),
        along,
        codec: f64::codec(x.dtype),
    }))
}

struct F32 {
    log: bool,
    beta: f32,
    along: Along,
}

impl F32 {
    /// One line that lies in one piece.
    fn line(&self, x: &[f32], y: &mut [f32]) {
        let beta = self.beta;
        let largest = x.iter().fold(f32::NEG_INFINITY, |m, &v| m.max(v * beta));
        let mut sum = 0.0f32;
        if self.log {
            for &v in x {
                sum += (v * beta - largest).exp();
            }
            let log = sum.ln();
            for (y, &v) in y.iter_mut().zip(x) {
                *y = v * beta - largest - log;
            }
        } else {
            for (y, &v) in y.iter_mut().zip(x) {
                *y = (v * beta - largest).exp();
                sum += *y;
            }
            let scale = 1.0 / sum;
            for y in y {
                *y *= scale;
            }
        }
    }

    /// Lines whose elements are apart, all of one block side by side.
    fn block(&self, x: &[f32], y: &mut [f32], largest: &mut [f32], sums: &mut [f32]) {
        let inner = self.along.inner;
        largest.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        for x in x.chunks_exact(inner) {
            for (m, &v) in largest.iter_mut().zip(x) {
                *m = m.max(v * self.beta);
            }
        }
        for (x, y) in x.chunks_exact(inner).zip(y.chunks_exact_mut(inner)) {
            for (((y, &v), &m), s) in y.iter_mut().zip(x).zip(&*largest).zip(&mut *sums) {
                *y = v * self.beta - m;
                let e = y.exp();
                *s += e;
                if !self.log {
                    *y = e;
                }
            }
        }
        for y in y.chunks_exact_mut(inner) {
            for (y, &s) in y.iter_mut().zip(&*sums) {
                *y = if self.log { *y - s.ln() } else { *y / s };
            }
        }
    }
}

impl Kernel for F32 {
    fn run(&self, io: &mut Io) -> Result<()> {
        let Along { n, inner, .. } = self.along;
        let (x, y) = (io.input::<f32>(0), io.output::<f32>(0));
        if n * inner == 0 {
            return Ok(());
        }
        let blocks = x.chunks_exact(n * inner).zip(y.chunks_exact_mut(n * inner));
        if inner == 1 {
            blocks.for_each(|(x, y)| self.line(x, y));
        } else {
            let (largest, sums) = io.scratch::<f32>(2 * inner).split_at_mut(inner);
            blocks.for_each(|(x, y)| self.block(x, y, largest, sums));
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        match self.along.inner {
            1 => 0,
            inner => 2 * inner * size_of::<f32>(),
        }
    }
}

struct Generic {
    kind: SoftmaxKind,
    beta: f64,
    along: Along,
    codec: Codec<f64>,
}

impl Kernel for Generic {
    fn run(&self, io: &mut Io) -> Result<()> {
        let Along { n, inner, .. } = self.along;
        let (x, y) = (io.input_bytes(0), io.output_bytes(0));
        let at = |first: usize, i: usize| self.codec.get(x, first + i * inner) * self.beta;
        self.along.lines(|first| {
            let (mut largest, mut place) = (f64::NEG_INFINITY, 0);
            for i in 0..n {
                if at(first, i) > largest {
                    (largest, place) = (at(first, i), i);
                }
            }
            let sum: f64 = match self.kind {
                SoftmaxKind::Hardmax => 1.0,
                _ => (0..n).map(|i| (at(first, i) - largest).exp()).sum(),
            };
            for i in 0..n {
                let v = match self.kind {
                    SoftmaxKind::Softmax => (at(first, i) - largest).exp() / sum,
                    SoftmaxKind::LogSoftmax => at(first, i) - largest - sum.ln(),
                    SoftmaxKind::Hardmax => f64::from(u8::from(i == place)),
                };
                self.codec.set(y, first + i * inner, v);
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{assert_close, noise, run_f32, tensor};

    #[test]
    fn along_every_axis() {
        let shape = [3, 7, 5];
        let x: Vec<f32> = noise(105, 6).iter().map(|v| v * 80.0 + 50.0).collect();
        for (axis, kind) in [
            (0, SoftmaxKind::Softmax),
            (1, SoftmaxKind::LogSoftmax),
            (-1, SoftmaxKind::Softmax),
            (2, SoftmaxKind::LogSoftmax),
            (1, SoftmaxKind::Hardmax),
        ] {
            let op = Softmax {
                kind,
                axis,
                beta: 1.0,
            };
            let y = run_f32(&op, &[&tensor(&shape, &x)], &shape);
            let along = Along::new(&shape, normalize_axis(axis, 3).unwrap());
            let mut want = vec![0.0; 105];
            along.lines(|first| {
                let at = |i| first + i * along.inner;
                let v: Vec<f64> = (0..along.n).map(|i| x[at(i)].into()).collect();
                let m = v.iter().copied().fold(f64::MIN, f64::max);
                let sum: f64 = v.iter().map(|v| (v - m).exp()).sum();
                for (i, v) in v.iter().enumerate() {
                    want[at(i)] = match kind {
                        SoftmaxKind::Softmax => (v - m).exp() / sum,
                        SoftmaxKind::LogSoftmax => v - m - sum.ln(),
                        SoftmaxKind::Hardmax => f64::from(u8::from(*v == m)),
                    };
                }
            });
            assert_close(&y, &want);
        }
    }
}
