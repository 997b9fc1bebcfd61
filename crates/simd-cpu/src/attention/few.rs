//! A few rows, as when a decoder makes one word: keys and values are read where they lie, each once for all rows.
//!
//! Long rows of keys are cut into parts, whose sums are merged in the end.

use std::any::Any;
use std::ops::Range;

use kilim_core::Result;
use kilim_host::{CpuRun, Io, Kernel, Scratch, by};

use super::soften::{Finish, Merge, Shrink, Soften};
use super::{FEW, Head, KEYS, Plan, Run, States};
use crate::gemm::FewRows;

/// Keys of a part: a multiple of [`KEYS`].
const PART: usize = 4 * KEYS;

pub(super) struct Few {
    plan: Plan,
    parts: usize,
}

/// Memory in which a thread computes, behind the states of a head in one part.
struct Own<'a> {
    scores: &'a mut [f32],
    factors: &'a mut [f32],
    /// Keys or values of a block.
    widened: &'a mut [f32],
}

impl<'a> Own<'a> {
    /// Elements of all but what is widened: states, scores and factors.
    const FIXED: usize = 2 * FEW + FEW * KEYS + FEW;

    fn of(memory: &'a mut [f32]) -> Own<'a> {
        let (scores, rest) = memory.split_at_mut(FEW * KEYS);
        let (factors, widened) = rest.split_at_mut(FEW);
        Own {
            scores,
            factors,
            widened,
        }
    }
}

impl Few {
    pub fn new(plan: Plan) -> Few {
        let parts = plan.sizes.keys.div_ceil(PART);
        Few { plan, parts }
    }

    /// Elements of the sums of a part, and of its states.
    fn part(&self) -> [usize; 2] {
        let rows = self.plan.rows();
        [rows * self.plan.sizes.value_size, 2 * rows]
    }

    /// Elements of the sums and states of all parts; none where there is one for each head.
    fn parts(&self) -> usize {
        match self.parts {
            1 => 0,
            parts => {
                let heads = self.plan.sizes.batch * self.plan.sizes.key_heads;
                let [sums, states] = self.part();
                heads.saturating_mul(parts).saturating_mul(sums + states)
            }
        }
    }

    /// Elements in which a thread computes.
    fn own(&self) -> usize {
        Own::FIXED + self.plan.widened()
    }

    /// The sums of the values of some keys.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    fn sum(
        &self,
        cpu: &CpuRun,
        head: Head,
        keys: Range<usize>,
        y: &mut [f32],
        states: &mut States,
        Own {
            scores,
            factors,
            widened,
        }: Own,
    ) -> Result<()> {
        let (plan, rows) = (&self.plan, self.plan.rows());
        let (size, value_size) = (plan.sizes.size, plan.sizes.value_size);
        let factors = &mut factors[..rows];
        let seen = head.seen_by(0..rows);
        let (first, end) = (keys.start.max(seen.start), keys.end.min(seen.end));
        y.fill(0.0);
        for start in (first..end).step_by(KEYS) {
            let keys = start..end.min(start + KEYS);
            cpu.spend(plan.cost(rows, keys.len()))?;
            assert!(rows <= FEW && scores.len() == FEW * KEYS);
            let key = start * size..keys.end * size;
            let products = FewRows {
                a: head.query,
                a_stride: size,
                b: head.key.floats(plan.isa, key, widened),
                b_stride: size,
                c: scores.as_mut_ptr(),
                c_stride: KEYS,
                m: rows,
                k: size,
                n: keys.len(),
            };
            // SAFETY: there is a row of `KEYS` scores for each of the rows.
            unsafe { products.multiply_transposed(plan.isa) };
            plan.isa.dispatch(Soften {
                head,
                rows: 0..rows,
                keys: keys.clone(),
                scores,
                stride: KEYS,
                scale: plan.scale,
                weights: 0..keys.len(),
                states: states.part(0..rows),
                factors,
            });
            plan.isa.dispatch(Shrink { y, factors });
            let values = start * value_size..keys.end * value_size;
            assert_eq!(y.len(), rows * value_size);
            let sums = FewRows {
                a: scores,
                a_stride: KEYS,
                b: head.value.floats(plan.isa, values, widened),
                b_stride: value_size,
                c: y.as_mut_ptr(),
                c_stride: value_size,
                m: rows,
                k: keys.len(),
                n: value_size,
            };
            // SAFETY: `y` has a row of `value_size` elements for each of the rows.
            unsafe { sums.add(plan.isa) };
        }
        Ok(())
    }

    fn finish(&self, head: Head, y: &mut [f32], states: States) {
        self.plan.isa.dispatch(Finish {
            head,
            rows: 0..self.plan.rows(),
            y,
            states,
        });
    }
}

impl Kernel for Few {
    fn in_place(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, plan) = (io.cpu(), &self.plan);
        let y = io.output::<f32>(0);
        let run = Run::new(plan, io);
        let own = self.own().saturating_mul(cpu.threads());
        let (parts, own) = io
            .scratch::<f32>(self.parts().saturating_add(own))
            .split_at_mut(self.parts());
        let (keys, heads) = (plan.sizes.keys, plan.sizes.batch * plan.sizes.key_heads);
        let [sums, states] = self.part();
        if self.parts == 1 {
            let cost = plan.cost(plan.rows(), keys);
            return cpu.rows_with(heads, by(y, sums), own, cost, |piece, y, own, cpu| {
                for (head, y) in piece.zip(y.chunks_exact_mut(sums)) {
                    let head = run.head(head);
                    let (memory, own) = own.split_at_mut(2 * FEW);
                    let mut states = States::new(&mut memory[..states]);
                    self.sum(cpu, head, 0..keys, y, &mut states, Own::of(own))?;
                    self.finish(head, y, states);
                }
                Ok(())
            });
        }
        let (count, each) = (heads * self.parts, sums + states);
        let cost = plan.cost(plan.rows(), PART);
        let list = by(&mut *parts, each);
        cpu.rows_with(count, list, own, cost, |piece, parts, own, cpu| {
            for (i, part) in piece.zip(parts.chunks_exact_mut(each)) {
                let (y, memory) = part.split_at_mut(sums);
                let first = i % self.parts * PART;
                let part = first..keys.min(first + PART);
                let head = run.head(i / self.parts);
                let own = Own::of(&mut own[2 * FEW..]);
                self.sum(cpu, head, part, y, &mut States::new(memory), own)?;
            }
            Ok(())
        })?;
        let cost = sums * self.parts;
        cpu.rows(heads, by(y, sums), cost, |piece, y, _| {
            for (head, y) in piece.zip(y.chunks_exact_mut(sums)) {
                let parts = &parts[head * self.parts * each..][..self.parts * each];
                self.merge(run.head(head), parts, y);
            }
            Ok(())
        })
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<f32>(self.parts()).and(Scratch::on_each_thread::<f32>(self.own()))
    }
}

impl Few {
    /// The results of a head by the sums of its parts.
    fn merge(&self, head: Head, parts: &[f32], y: &mut [f32]) {
        let ([sums, states], mut memory) = (self.part(), [0.0; 2 * FEW]);
        let mut all = States::new(&mut memory[..states]);
        for part in parts.chunks_exact(sums + states) {
            let (other, memory) = part.split_at(sums);
            let (other_largest, other_sums) = memory.split_at(states / 2);
            self.plan.isa.dispatch(Merge {
                y,
                states: all.part(0..states / 2),
                other,
                other_largest,
                other_sums,
            });
        }
        self.finish(head, y, all);
    }
}
