//! A few rows, as when a decoder makes one word: keys and values are read where they lie, each once for all rows.
//!
//! Long rows of keys are cut into parts, whose sums are merged in the end.

use std::ops::Range;

use kilim_core::Result;
use kilim_host::{CpuRun, Io, Kernel, Scratch, by};

use super::soften::{Finish, Merge, Shrink, Soften};
use super::{FEW, Head, KEYS, Plan, Run, States};
use crate::isa::{Simd, Task, read, write};

/// Keys of a part: a multiple of [`KEYS`].
const PART: usize = 4 * KEYS;

/// Keys that are multiplied together.
const KEYS_AT_ONCE: usize = 4;
/// Rows that are multiplied together.
const ROWS_AT_ONCE: usize = 3;
/// Vectors of values that are summed together.
const VECTORS_AT_ONCE: usize = 4;

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
            plan.isa.dispatch(Products {
                query: head.query,
                key: head
                    .key
                    .floats(plan.isa, start * size..keys.end * size, widened),
                size,
                scores,
            });
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
            plan.isa.dispatch(Sums {
                weights: scores,
                value: head.value.floats(plan.isa, values, widened),
                size: value_size,
                y,
            });
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

/// `scores = query · keyᵀ`; a row of scores has [`KEYS`] elements.
struct Products<'a> {
    query: &'a [f32],
    key: &'a [f32],
    size: usize,
    scores: &'a mut [f32],
}

impl Task for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Products {
            query,
            key,
            size,
            scores,
        } = self;
        let (rows, keys) = (query.len() / size, key.len() / size);
        assert!(keys <= KEYS && scores.len() >= rows * KEYS);
        let whole = keys - keys % KEYS_AT_ONCE;
        for j in (0..whole).step_by(KEYS_AT_ONCE) {
            let key = &key[j * size..][..KEYS_AT_ONCE * size];
            products::<S, KEYS_AT_ONCE>(s, query, key, size, &mut scores[j..]);
        }
        for j in whole..keys {
            let key = &key[j * size..][..size];
            products::<S, 1>(s, query, key, size, &mut scores[j..]);
        }
    }
}

/// The products of all rows with `N` keys.
#[inline(always)]
fn products<S: Simd, const N: usize>(
    s: S,
    query: &[f32],
    key: &[f32],
    size: usize,
    scores: &mut [f32],
) {
    let rows = query.len() / size;
    for row in (0..rows).step_by(ROWS_AT_ONCE) {
        let (query, scores) = (&query[row * size..], &mut scores[row * KEYS..]);
        match rows - row {
            1 => dots::<S, 1, N>(s, query, key, size, scores),
            2 => dots::<S, 2, N>(s, query, key, size, scores),
            _ => dots::<S, 3, N>(s, query, key, size, scores),
        }
    }
}

/// The products of `M` rows with `N` keys.
#[inline(always)]
fn dots<S: Simd, const M: usize, const N: usize>(
    s: S,
    query: &[f32],
    key: &[f32],
    size: usize,
    scores: &mut [f32],
) {
    assert!(query.len() >= M * size && key.len() >= N * size);
    let (query, key) = (query.as_ptr(), key.as_ptr());
    let whole = size - size % S::LANES;
    let mut sums = [[s.splat(0.0); N]; M];
    macro_rules! add {
        ($full:literal, $at:expr, $count:expr) => {
            for n in 0..N {
                // SAFETY: `$count` elements from `$at` on are inside of a key, and of a row.
                let key = unsafe { read::<S, $full>(s, key.add(n * size + $at), $count) };
                for m in 0..M {
                    // SAFETY: `$count` elements from `$at` on are inside of a row.
                    let query = unsafe { read::<S, $full>(s, query.add(m * size + $at), $count) };
                    sums[m][n] = s.fma(query, key, sums[m][n]);
                }
            }
        };
    }
    for at in (0..whole).step_by(S::LANES) {
        add!(true, at, S::LANES);
    }
    if whole < size {
        add!(false, whole, size - whole);
    }
    for m in 0..M {
        for n in 0..N {
            scores[m * KEYS + n] = s.sum(sums[m][n]);
        }
    }
}

/// `y += weights · value`; a row of weights has [`KEYS`] elements.
struct Sums<'a> {
    weights: &'a [f32],
    value: &'a [f32],
    size: usize,
    y: &'a mut [f32],
}

impl Task for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let size = self.size;
        let mut column = 0;
        while size - column >= VECTORS_AT_ONCE * S::LANES {
            self.columns::<S, VECTORS_AT_ONCE, true>(s, column);
            column += VECTORS_AT_ONCE * S::LANES;
        }
        while size - column >= S::LANES {
            self.columns::<S, 1, true>(s, column);
            column += S::LANES;
        }
        if column < size {
            self.columns::<S, 1, false>(s, column);
        }
    }
}

impl Sums<'_> {
    /// `V` vectors of values, or where these are not `FULL` what is left of one.
    #[inline(always)]
    fn columns<S: Simd, const V: usize, const FULL: bool>(&mut self, s: S, column: usize) {
        let rows = self.y.len() / self.size;
        for row in (0..rows).step_by(ROWS_AT_ONCE) {
            match rows - row {
                1 => self.tile::<S, 1, V, FULL>(s, row, column),
                2 => self.tile::<S, 2, V, FULL>(s, row, column),
                _ => self.tile::<S, 3, V, FULL>(s, row, column),
            }
        }
    }

    /// The columns of `M` rows.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "an index counts several arrays, all unrolled"
    )]
    fn tile<S: Simd, const M: usize, const V: usize, const FULL: bool>(
        &mut self,
        s: S,
        row: usize,
        column: usize,
    ) {
        let size = self.size;
        let keys = self.value.len() / size;
        let count = if FULL { S::LANES } else { size - column };
        let last = column + (V - 1) * S::LANES;
        assert!(count <= S::LANES && last + count <= size);
        assert!(self.y.len() >= (row + M) * size);
        assert!(keys <= KEYS && self.weights.len() >= (row + M) * KEYS);
        let value = self.value.as_ptr().wrapping_add(column);
        let weights = self.weights.as_ptr().wrapping_add(row * KEYS);
        let y = self.y.as_mut_ptr().wrapping_add(row * size + column);
        let mut sums = [[s.splat(0.0); V]; M];
        // SAFETY: `V - 1` vectors and `count` elements from `column` on are inside of each row of values and of `y`, and a
        // row of weights has an element for each of the keys.
        unsafe {
            for m in 0..M {
                for v in 0..V {
                    sums[m][v] = read::<S, FULL>(s, y.add(m * size + v * S::LANES), count);
                }
            }
            for j in 0..keys {
                let mut values = [s.splat(0.0); V];
                for v in 0..V {
                    values[v] = read::<S, FULL>(s, value.add(j * size + v * S::LANES), count);
                }
                for m in 0..M {
                    let weight = s.splat(*weights.add(m * KEYS + j));
                    for v in 0..V {
                        sums[m][v] = s.fma(weight, values[v], sums[m][v]);
                    }
                }
            }
            for m in 0..M {
                for v in 0..V {
                    write::<S, FULL>(s, y.add(m * size + v * S::LANES), sums[m][v], count);
                }
            }
        }
    }
}
