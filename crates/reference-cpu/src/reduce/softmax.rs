//! Softmax, LogSoftmax and Hardmax along one axis.

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Softmax, SoftmaxKind, normalize_axis};
use kilim_core::{DType, Result};
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

use super::Along;

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

/// Operations of an element: an exponential, and what is done with it.
const COST: usize = 16;

/// Lines that lie among each other and are computed together.
const LINES: usize = 8 * 1024;

impl F32 {
    /// One line that lies in one piece.
    fn line(&self, cpu: &CpuRun, x: &[f32], y: &mut [f32]) -> Result<()> {
        let (beta, n) = (self.beta, x.len());
        let (mut largest, mut sum) = (f32::NEG_INFINITY, 0.0f32);
        cpu.pieces(n, 1, |part| {
            largest = x[part].iter().fold(largest, |m, &v| m.max(v * beta));
            Ok(())
        })?;
        cpu.pieces(n, COST, |part| {
            for (y, &v) in y[part.clone()].iter_mut().zip(&x[part]) {
                *y = (v * beta - largest).exp();
                sum += *y;
            }
            Ok(())
        })?;
        let (log, scale) = (sum.ln(), 1.0 / sum);
        cpu.pieces(n, 1, |part| {
            let both = y[part.clone()].iter_mut().zip(&x[part]);
            if self.log {
                both.for_each(|(y, &v)| *y = v * beta - largest - log);
            } else {
                both.for_each(|(y, _)| *y *= scale);
            }
            Ok(())
        })
    }

    /// Lines whose elements are apart, all of one block side by side.
    fn block(
        &self,
        cpu: &CpuRun,
        x: &[f32],
        y: &mut [f32],
        largest: &mut [f32],
        sums: &mut [f32],
    ) -> Result<()> {
        let inner = self.along.inner;
        // Some lines at a time where there are many.
        for first in (0..inner).step_by(LINES) {
            let part = first..inner.min(first + LINES);
            let (largest, sums) = (&mut largest[part.clone()], &mut sums[part.clone()]);
            largest.fill(f32::NEG_INFINITY);
            sums.fill(0.0);
            for x in x.chunks_exact(inner) {
                cpu.spend(part.len())?;
                for (m, &v) in largest.iter_mut().zip(&x[part.clone()]) {
                    *m = m.max(v * self.beta);
                }
            }
            for (x, y) in x.chunks_exact(inner).zip(y.chunks_exact_mut(inner)) {
                cpu.spend(part.len().saturating_mul(COST))?;
                let (x, y) = (&x[part.clone()], &mut y[part.clone()]);
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
                cpu.spend(part.len())?;
                for (y, &s) in y[part.clone()].iter_mut().zip(&*sums) {
                    *y = if self.log { *y - s.ln() } else { *y / s };
                }
            }
        }
        Ok(())
    }
}

impl Kernel for F32 {
    fn run(&self, io: &mut Io) -> Result<()> {
        let Along { outer, inner, .. } = self.along;
        let (cpu, block) = (io.cpu(), self.along.block());
        let (x, y) = (io.input::<f32>(0), io.output::<f32>(0));
        if block == 0 {
            return Ok(());
        }
        let cost = block.saturating_mul(COST);
        let room = io.thread_scratch::<f32>(self.room());
        cpu.rows_with(outer, by(y, block), room, cost, |piece, y, room, cpu| {
            let blocks = x[piece.start * block..].chunks_exact(block);
            let mut blocks = blocks.zip(y.chunks_exact_mut(block));
            if inner == 1 {
                return blocks.try_for_each(|(x, y)| self.line(cpu, x, y));
            }
            let (largest, sums) = room.split_at_mut(inner);
            blocks.try_for_each(|(x, y)| self.block(cpu, x, y, largest, sums))
        })
    }

    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<f32>(self.room())
    }
}

impl F32 {
    /// Elements that a block is computed in.
    fn room(&self) -> usize {
        match self.along.inner {
            1 => 0,
            inner => inner.saturating_mul(2),
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
        let (x, y, size) = (io.input_bytes(0), io.output_bytes(0), self.codec.size());
        let cost = 2 * COST;
        self.along
            .lines(io.cpu(), y, size, cost, |block, line, y, cpu| {
                let x = &x[block * n * inner * size..];
                let at = |i: usize| self.codec.get(x, line + i * inner) * self.beta;
                let (mut largest, mut place, mut sum) = (f64::NEG_INFINITY, 0, 0.0);
                cpu.pieces(n, 4, |part| {
                    for i in part {
                        if at(i) > largest {
                            (largest, place) = (at(i), i);
                        }
                    }
                    Ok(())
                })?;
                if self.kind != SoftmaxKind::Hardmax {
                    cpu.pieces(n, COST, |part| {
                        sum = part.fold(sum, |sum, i| sum + (at(i) - largest).exp());
                        Ok(())
                    })?;
                }
                cpu.pieces(n, COST, |part| {
                    for i in part {
                        let v = match self.kind {
                            SoftmaxKind::Softmax => (at(i) - largest).exp() / sum,
                            SoftmaxKind::LogSoftmax => at(i) - largest - sum.ln(),
                            SoftmaxKind::Hardmax => f64::from(u8::from(i == place)),
                        };
                        self.codec.set(y, line + i * inner, v);
                    }
                    Ok(())
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_f32;
    use kilim_host::testing::{assert_close, noise, tensor};

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
            for line in 0..along.outer * along.inner {
                let first = line / along.inner * along.block() + line % along.inner;
                let at = |i: usize| first + i * along.inner;
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
            }
            assert_close(&y, &want);
        }
    }
}
