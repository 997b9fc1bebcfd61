//! From scores to weights, with a running maximum and sum for each row.

use std::ops::Range;

use super::{Head, States};
use crate::isa::{Simd, Task};
use crate::math::{exp, tanh};

/// The exponential of one number.
#[inline(always)]
fn exp_of<S: Simd>(s: S, x: f32) -> f32 {
    s.largest(exp(s, s.splat(x)))
}

/// Scores of some rows and keys become weights, and what was summed before is told by which factor it shrinks.
pub(super) struct Soften<'a> {
    pub head: Head<'a>,
    pub rows: Range<usize>,
    /// The keys of the block.
    pub keys: Range<usize>,
    /// Scores of the keys, `stride` elements for each row.
    pub scores: &'a mut [f32],
    pub stride: usize,
    /// Multiplies the scores.
    pub scale: f32,
    /// The elements of a row that must be weights; those of keys that the row does not see are zero.
    pub weights: Range<usize>,
    pub states: States<'a>,
    /// For each row.
    pub factors: &'a mut [f32],
}

impl Task for Soften<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let first = self.keys.start;
        for (t, row) in self.rows.enumerate() {
            let scores = &mut self.scores[t * self.stride..][..self.weights.end];
            let seen = self.head.seen(row);
            let start = seen.start.clamp(first, self.keys.end);
            let end = seen.end.clamp(start, self.keys.end);
            let within = start - first..end - first;
            let factor = &mut self.factors[t];
            *factor = 1.0;
            let none = within.is_empty();
            let zeros = if none { self.weights.end } else { within.start };
            scores[self.weights.start.min(zeros)..zeros].fill(0.0);
            if none {
                continue;
            }
            scores[within.end..].fill(0.0);
            let cap = self.head.plan().softcap;
            let bias = self.head.bias(row, start..end);
            let scores = &mut scores[within];
            let (before, sum) = (self.states.largest[t], self.states.sums[t]);
            let largest = before.max(prepare(s, scores, self.scale, cap, bias));
            // Of minus infinity alone all weights are zero.
            let shift = if largest == f32::NEG_INFINITY {
                0.0
            } else {
                largest
            };
            if before == f32::NEG_INFINITY {
                // Nothing was summed.
                *factor = if largest > before { 0.0 } else { 1.0 };
            } else if largest > before {
                *factor = exp_of(s, before - shift);
            }
            self.states.largest[t] = largest;
            self.states.sums[t] = sum * *factor + weigh(s, scores, shift);
        }
    }
}

/// Scores of a vector with everything that changes them.
#[inline(always)]
fn prepared<S: Simd>(s: S, scores: S::V, scale: f32, cap: Option<f32>, bias: S::V) -> S::V {
    let mut x = s.mul(scores, s.splat(scale));
    if let Some(cap) = cap {
        let cap = s.splat(cap);
        x = s.mul(tanh(s, s.div(x, cap)), cap);
    }
    s.add(x, bias)
}

/// Scores with everything that changes them, and the largest; what is no number is left out of that.
#[inline(always)]
fn prepare<S: Simd>(
    s: S,
    scores: &mut [f32],
    scale: f32,
    cap: Option<f32>,
    bias: Option<&[f32]>,
) -> f32 {
    let count = scores.len();
    let (whole, p) = (count - count % S::LANES, scores.as_mut_ptr());
    let apart = bias.filter(|bias| bias.len() == count);
    let alike = bias.filter(|bias| bias.len() != count).map(|bias| bias[0]);
    let alike = s.splat(alike.unwrap_or(0.0));
    let mut largest = s.splat(f32::NEG_INFINITY);
    // SAFETY: `i + LANES <= count` in the loop, and the rest is shorter than a vector; `apart` has `count` elements.
    unsafe {
        for i in (0..whole).step_by(S::LANES) {
            let bias = apart.map_or(alike, |bias| s.load(bias.as_ptr().add(i)));
            let x = prepared(s, s.load(p.add(i)), scale, cap, bias);
            s.store(p.add(i), x);
            largest = s.max(largest, x);
        }
        if whole < count {
            let rest = count - whole;
            let bias = apart.map_or(alike, |bias| s.load_part(bias.as_ptr().add(whole), rest));
            let x = prepared(s, s.load_part(p.add(whole), rest), scale, cap, bias);
            s.store_part(p.add(whole), x, rest);
        }
    }
    let rest = &scores[whole..];
    rest.iter()
        .fold(s.largest(largest), |largest, &x| largest.max(x))
}

/// Scores become their weights; the sum of these.
#[inline(always)]
fn weigh<S: Simd>(s: S, scores: &mut [f32], shift: f32) -> f32 {
    let count = scores.len();
    let (whole, p) = (count - count % S::LANES, scores.as_mut_ptr());
    let shift = s.splat(shift);
    let mut sums = s.splat(0.0);
    // SAFETY: `i + LANES <= count` in the loop, and the rest is shorter than a vector.
    unsafe {
        for i in (0..whole).step_by(S::LANES) {
            let e = exp(s, s.sub(s.load(p.add(i)), shift));
            s.store(p.add(i), e);
            sums = s.add(sums, e);
        }
        if whole < count {
            let rest = count - whole;
            let e = exp(s, s.sub(s.load_part(p.add(whole), rest), shift));
            s.store_part(p.add(whole), e, rest);
        }
    }
    scores[whole..].iter().fold(s.sum(sums), |sum, e| sum + e)
}

/// Rows multiplied by a number each.
pub(super) struct Shrink<'a> {
    pub y: &'a mut [f32],
    pub factors: &'a [f32],
}

impl Task for Shrink<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let size = self.y.len() / self.factors.len().max(1);
        for (y, &factor) in self.y.chunks_exact_mut(size).zip(self.factors) {
            if factor != 1.0 {
                scaled(s, y, factor);
            }
        }
    }
}

#[inline(always)]
fn scaled<S: Simd>(s: S, y: &mut [f32], factor: f32) {
    let (count, p, factor) = (y.len(), y.as_mut_ptr(), s.splat(factor));
    let whole = count - count % S::LANES;
    // SAFETY: `i + LANES <= count` in the loop, and the rest is shorter than a vector.
    unsafe {
        for i in (0..whole).step_by(S::LANES) {
            s.store(p.add(i), s.mul(s.load(p.add(i)), factor));
        }
        if whole < count {
            let rest = count - whole;
            let x = s.mul(s.load_part(p.add(whole), rest), factor);
            s.store_part(p.add(whole), x, rest);
        }
    }
}

/// Sums of values become results: divided by the sums of weights, with the sinks among them.
pub(super) struct Finish<'a> {
    pub head: Head<'a>,
    pub rows: Range<usize>,
    /// One row of values for each; anything for those that saw nothing.
    pub y: &'a mut [f32],
    pub states: States<'a>,
}

impl Task for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let plan = self.head.plan();
        let lines = self.y.chunks_exact_mut(plan.sizes.value_size);
        for ((t, row), y) in self.rows.enumerate().zip(lines) {
            let (largest, mut sum) = (self.states.largest[t], self.states.sums[t]);
            let sink = self.head.run.sinks;
            let sink = sink.map(|sinks| sinks[self.head.head_of(row)]);
            if sum == 0.0 {
                // A sink takes everything, unless it is minus infinity, too.
                y.fill(match sink.filter(|&sink| sink != f32::NEG_INFINITY) {
                    Some(sink) if sink.is_finite() => 0.0,
                    None if plan.zeros => 0.0,
                    _ => f32::NAN,
                });
                continue;
            }
            let mut factor = 1.0;
            if let Some(sink) = sink {
                let most = largest.max(sink);
                factor = exp_of(s, largest - most);
                sum = sum * factor + exp_of(s, sink - most);
            }
            scaled(s, y, factor / sum);
        }
    }
}

/// Adds the sums of values of another range of keys.
pub(super) struct Merge<'a> {
    pub y: &'a mut [f32],
    pub states: States<'a>,
    pub other: &'a [f32],
    pub other_largest: &'a [f32],
    pub other_sums: &'a [f32],
}

impl Task for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let size = self.y.len() / self.other_sums.len().max(1);
        let lines = self.y.chunks_exact_mut(size);
        for (t, (y, other)) in lines.zip(self.other.chunks_exact(size)).enumerate() {
            let (largest, sum) = (self.states.largest[t], self.states.sums[t]);
            let (more, weight) = (self.other_largest[t], self.other_sums[t]);
            if weight == 0.0 {
                continue;
            }
            if sum == 0.0 {
                y.copy_from_slice(other);
                (self.states.largest[t], self.states.sums[t]) = (more, weight);
                continue;
            }
            let most = largest.max(more);
            let shift = if most == f32::NEG_INFINITY { 0.0 } else { most };
            let (own, added) = (exp_of(s, largest - shift), exp_of(s, more - shift));
            self.states.largest[t] = most;
            self.states.sums[t] = sum * own + weight * added;
            for (y, other) in y.iter_mut().zip(other) {
                *y = *y * own + other * added;
            }
        }
    }
}
