//! Reductions of `float32`.

use kilim_core::Result;
use kilim_core::ops::ReduceKind;
use kilim_host::{CpuRun, Io, Kernel, Scratch, by};

use super::{Nest, finish, start};

pub(super) struct Fold {
    pub kind: ReduceKind,
    pub nest: Nest,
}

const LANES: usize = 8;

/// Outputs that lie side by side and are computed together.
const TOGETHER: usize = 4 * 1024;

impl Fold {
    /// `step` takes in one element, `merge` unites two accumulators.
    fn fold(
        &self,
        io: &mut Io,
        step: impl Fn(f64, f32) -> f64 + Sync,
        merge: impl Fn(f64, f64) -> f64 + Sync,
    ) -> Result<()> {
        let (kind, nest) = (self.kind, &self.nest);
        let (cpu, x) = (io.cpu(), io.input::<f32>(0));
        let (y, count) = (io.output::<f32>(0), nest.count);
        if !nest.side_by_side() {
            return cpu.rows(y.len(), by(y, 1), count.max(1), |piece, y, cpu| {
                nest.outputs(piece, |o, base| {
                    let sum = self.line(cpu, x, base, &step, &merge)?;
                    y[o] = finish(kind, sum, count) as f32;
                    Ok(())
                })
            });
        }
        let room = io.thread_scratch::<f64>(self.room());
        let cost = count.max(1);
        cpu.rows_with(y.len(), by(y, 1), room, cost, |piece, y, room, cpu| {
            nest.kept.spans(piece, |span| {
                let outputs = y[span.first..][..span.len].chunks_mut(TOGETHER);
                for (y, first) in outputs.zip((span.at[0]..).step_by(TOGETHER)) {
                    let sums = &mut room[..y.len()];
                    sums.fill(start(kind));
                    self.columns(cpu, x, first, sums, &step)?;
                    for (y, &s) in y.iter_mut().zip(&*sums) {
                        *y = finish(kind, s, count) as f32;
                    }
                }
                Ok(())
            })
        })
    }

    /// Joins what is reduced for outputs side by side; the first one's elements begin at `base`.
    fn columns(
        &self,
        cpu: &CpuRun,
        x: &[f32],
        base: isize,
        sums: &mut [f64],
        step: impl Fn(f64, f32) -> f64,
    ) -> Result<()> {
        let (_, [along]) = self.nest.reduced.row();
        cpu.pieces(self.nest.count, sums.len(), |part| {
            self.nest.reduced.spans(part, |span| {
                let mut at = base + span.at[0];
                for _ in 0..span.len {
                    for (s, &v) in sums.iter_mut().zip(&x[at as usize..]) {
                        *s = step(*s, v);
                    }
                    at += along;
                }
                Ok(())
            })
        })
    }

    /// Joins what is reduced for one output.
    fn line(
        &self,
        cpu: &CpuRun,
        x: &[f32],
        base: isize,
        step: impl Fn(f64, f32) -> f64,
        merge: impl Fn(f64, f64) -> f64,
    ) -> Result<f64> {
        let first = start(self.kind);
        let mut sum = first;
        let (_, [along]) = self.nest.reduced.row();
        cpu.pieces(self.nest.count, 1, |part| {
            self.nest.reduced.spans(part, |span| {
                let at = (base + span.at[0]) as usize;
                if along != 1 {
                    for i in 0..span.len {
                        sum = step(sum, x[at + i * along as usize]);
                    }
                    return Ok(());
                }
                let mut lanes = [first; LANES];
                let (blocks, rest) = x[at..at + span.len].as_chunks::<LANES>();
                for block in blocks {
                    for (lane, &v) in lanes.iter_mut().zip(block) {
                        *lane = step(*lane, v);
                    }
                }
                for &v in rest {
                    sum = step(sum, v);
                }
                sum = lanes.into_iter().fold(sum, &merge);
                Ok(())
            })
        })?;
        Ok(sum)
    }

    /// Accumulators of outputs that are computed together.
    fn room(&self) -> usize {
        match self.nest.side_by_side() {
            true => self.nest.kept.row().0.min(TOGETHER),
            false => 0,
        }
    }
}

impl Kernel for Fold {
    fn run(&self, io: &mut Io) -> Result<()> {
        let add = |a: f64, b: f64| a + b;
        let max = |a: f64, b: f64| if a > b || a.is_nan() { a } else { b };
        let min = |a: f64, b: f64| if a < b || a.is_nan() { a } else { b };
        match self.kind {
            ReduceKind::Max => self.fold(io, |a, x| max(a, x.into()), max),
            ReduceKind::Min => self.fold(io, |a, x| min(a, x.into()), min),
            ReduceKind::Prod => self.fold(io, |a, x| a * f64::from(x), |a, b| a * b),
            ReduceKind::L1 => self.fold(io, |a, x| a + f64::from(x.abs()), add),
            ReduceKind::L2 | ReduceKind::SumSquare => {
                self.fold(io, |a, x| a + f64::from(x) * f64::from(x), add)
            }
            _ => self.fold(io, |a, x| a + f64::from(x), add),
        }
    }

    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<f64>(self.room())
    }
}
