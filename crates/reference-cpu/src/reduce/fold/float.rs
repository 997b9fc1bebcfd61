//! Reductions of `float32`.

use kilim_core::Result;
use kilim_core::ops::ReduceKind;

use super::{Nest, finish, start};
use crate::frame::{Io, Kernel};

pub(super) struct Fold {
    pub kind: ReduceKind,
    pub nest: Nest,
}

const LANES: usize = 8;

impl Fold {
    /// `step` takes in one element, `merge` unites two accumulators.
    fn fold(&self, io: &mut Io, step: impl Fn(f64, f32) -> f64, merge: impl Fn(f64, f64) -> f64) {
        let (kind, nest) = (self.kind, &self.nest);
        let x = io.input::<f32>(0);
        let y = io.output::<f32>(0);
        let first = start(kind);
        let (n, [stride]) = nest.kept.row();
        if nest.side_by_side() {
            let sums = io.scratch::<f64>(n);
            let mut rows = y.chunks_exact_mut(n);
            nest.kept.rows(|[base]| {
                sums.fill(first);
                nest.reduced.elements(|[r]| {
                    for (s, &v) in sums.iter_mut().zip(&x[(base + r) as usize..]) {
                        *s = step(*s, v);
                    }
                });
                let Some(row) = rows.next() else { return };
                for (y, &s) in row.iter_mut().zip(&*sums) {
                    *y = finish(kind, s, nest.count) as f32;
                }
            });
            return;
        }
        let (len, [along]) = nest.reduced.row();
        let mut y = y.iter_mut();
        nest.kept.rows(|[mut base]| {
            for _ in 0..n {
                let mut sum = first;
                nest.reduced.rows(|[r]| {
                    let at = (base + r) as usize;
                    if along == 1 {
                        let mut lanes = [first; LANES];
                        let (blocks, rest) = x[at..at + len].as_chunks::<LANES>();
                        for block in blocks {
                            for (lane, &v) in lanes.iter_mut().zip(block) {
                                *lane = step(*lane, v);
                            }
                        }
                        for &v in rest {
                            sum = step(sum, v);
                        }
                        sum = lanes.into_iter().fold(sum, &merge);
                    } else {
                        for i in 0..len {
                            sum = step(sum, x[at + i * along as usize]);
                        }
                    }
                });
                if let Some(y) = y.next() {
                    *y = finish(kind, sum, nest.count) as f32;
                }
                base += stride;
            }
        });
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
                self.fold(io, |a, x| a + f64::from(x) * f64::from(x), add);
            }
            _ => self.fold(io, |a, x| a + f64::from(x), add),
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        match self.nest.side_by_side() {
            true => self.nest.kept.row().0 * size_of::<f64>(),
            false => 0,
        }
    }
}
