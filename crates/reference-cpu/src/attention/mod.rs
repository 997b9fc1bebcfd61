//! Attention: for each query a row of scores, their softmax, and the sum of the values that it weighs; rotary embedding, and
//! what stands in front of both.

mod qkv;
mod rotary;
mod seen;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::ops::Range;

use kilim_core::backend::NodeSpec;
use kilim_core::error::shape_error;
use kilim_core::ops::{Attention, RotaryEmbedding, UnpackQkv};
use kilim_core::{DType, Result};
use kilim_host::elements::{Walk, broadcast_strides};
use kilim_host::registry::KernelRegistry;
use kilim_host::rules::{self, required};
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

use crate::by_real;
use crate::common::Real;

pub use qkv::Unpack;
pub use rotary::Turning;
pub use seen::{Seen, Sight};

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<Attention>(rules::reals, build);
    registry.add::<RotaryEmbedding>(rules::reals, rotary::build);
    registry.add::<UnpackQkv>(rules::reals, qkv::build);
}

/// Operations of an exponential, and what is done with it.
const COST: usize = 16;

/// The dimensions of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Batches.
    pub batch: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub key_heads: usize,
    /// Queries of a head.
    pub queries: usize,
    /// Keys of a head.
    pub keys: usize,
    /// Numbers of a query and of a key.
    pub size: usize,
    /// Numbers of a value.
    pub value_size: usize,
}

impl Sizes {
    /// The dimensions of a node's query, key and value.
    ///
    /// # Errors
    /// `Shape` where one of them is missing or has another rank than four.
    pub fn of(node: &NodeSpec) -> Result<Sizes> {
        let shape = |i| match required(node, i)?.shape[..] {
            [a, b, c, d] => Ok([a, b, c, d]),
            _ => Err(shape_error("four dimensions are needed")),
        };
        let [batch, heads, queries, size] = shape(0)?;
        let [_, key_heads, keys, _] = shape(1)?;
        let [.., value_size] = shape(2)?;
        Ok(Sizes {
            batch,
            heads,
            key_heads,
            queries,
            keys,
            size,
            value_size,
        })
    }

    /// How many query heads share a key head.
    pub fn group(&self) -> usize {
        self.heads / self.key_heads.max(1)
    }
}

fn build(op: &Attention, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let sizes = Sizes::of(node)?;
    let scores = [sizes.batch, sizes.heads, sizes.queries, sizes.keys];
    let bias = node
        .input(3)
        .map(|s| Walk::new(&scores, [&broadcast_strides(&s.shape, &scores)]));
    let rows = Rows {
        sight: Sight::new(op, &sizes),
        op: op.clone(),
        sizes,
        bias,
    };
    by_real!(required(node, 0)?.dtype, T => {
        Ok(Box::new(Typed::<T> { rows, steps: has_steps(node), real: PhantomData }))
    })
}

/// Whether keys and values are `int8`.
pub fn has_steps(node: &NodeSpec) -> bool {
    node.input(1).is_some_and(|key| key.dtype == DType::I8)
}

struct Rows {
    op: Attention,
    sizes: Sizes,
    sight: Sight,
    /// Over the elements of the bias.
    bias: Option<Walk<1>>,
}

struct Typed<T> {
    rows: Rows,
    /// Keys and values are `int8`.
    steps: bool,
    real: PhantomData<T>,
}

/// The inputs of a run.
struct Inputs<'a, T> {
    query: &'a [T],
    key: Stored<'a, T>,
    value: Stored<'a, T>,
    bias: Option<&'a [T]>,
    sinks: Option<&'a [T]>,
}

/// Keys or values.
enum Stored<'a, T> {
    Reals(&'a [T]),
    Steps(&'a [i8]),
}

impl<'a, T: Real> Stored<'a, T> {
    fn of(io: &Io<'a>, input: usize, steps: bool) -> Stored<'a, T> {
        match steps {
            true => Stored::Steps(io.input(input)),
            false => Stored::Reals(io.input(input)),
        }
    }

    /// Numbers of type `T` from element `at` on, as many as `room` has; steps are widened there.
    fn line<'s>(&'s self, at: usize, room: &'s mut [T]) -> &'s [T] {
        match self {
            Stored::Reals(all) => &all[at..][..room.len()],
            Stored::Steps(all) => {
                for (to, &from) in room.iter_mut().zip(&all[at..]) {
                    *to = T::of(from.into());
                }
                room
            }
        }
    }
}

/// `a · b`.
fn dot<T: Real>(cpu: &CpuRun, a: &[T], b: &[T]) -> Result<T> {
    let mut sum = T::default();
    cpu.pieces(a.len(), 1, |piece| {
        let pairs = a[piece.clone()].iter().zip(&b[piece]);
        sum = pairs.fold(sum, |sum, (&a, &b)| sum + a * b);
        Ok(())
    })?;
    Ok(sum)
}

impl Rows {
    /// The scores of the keys `seen` for row `row` of all queries, into as many elements of `scores`.
    fn scores<T: Real>(
        &self,
        cpu: &CpuRun,
        inputs: &Inputs<T>,
        row: usize,
        seen: Range<usize>,
        scores: &mut [T],
        line: &mut [T],
    ) -> Result<()> {
        let Sizes {
            queries,
            keys,
            size,
            ..
        } = self.sizes;
        let query = &inputs.query[row * size..][..size];
        let first = self.key_head(row / queries) * keys + seen.start;
        let scale = T::of(self.op.scale.into());
        cpu.pieces(seen.len(), size.saturating_add(COST), |piece| {
            for j in piece {
                let key = inputs.key.line((first + j) * size, &mut line[..size]);
                scores[j] = dot(cpu, query, key)? * scale;
            }
            Ok(())
        })?;
        if let Some(cap) = self.op.softcap {
            let cap = f64::from(cap);
            cpu.pieces(seen.len(), COST, |piece| {
                for score in &mut scores[piece] {
                    *score = T::of((score.wide() / cap).tanh() * cap);
                }
                Ok(())
            })?;
        }
        let (Some(walk), Some(bias)) = (&self.bias, inputs.bias) else {
            return Ok(());
        };
        let (first, (_, [step])) = (row * keys, walk.row());
        let elements = first + seen.start..first + seen.end;
        walk.spans(elements, |span| {
            let mut at = span.at[0];
            cpu.pieces(span.len, 1, |piece| {
                for score in &mut scores[span.first..][piece] {
                    *score += bias[at as usize];
                    at += step;
                }
                Ok(())
            })
        })
    }

    /// Elements of scratch memory of a thread.
    fn room(&self) -> usize {
        let line = self.sizes.size.max(self.sizes.value_size);
        self.sizes.keys.saturating_add(line)
    }

    /// The number of the key head, counted over all batches, for one of the query heads counted so.
    fn key_head(&self, head: usize) -> usize {
        let (batch, head) = (head / self.sizes.heads, head % self.sizes.heads);
        batch * self.sizes.key_heads + head / self.sizes.group()
    }

    /// The output `y` of row `row` of all queries; `room` has place for the scores of all keys, and for a key or a value.
    fn row<T: Real>(
        &self,
        cpu: &CpuRun,
        inputs: &Inputs<T>,
        row: usize,
        seen: Range<usize>,
        room: &mut [T],
        y: &mut [T],
    ) -> Result<()> {
        let Sizes {
            heads,
            queries,
            keys,
            value_size,
            ..
        } = self.sizes;
        cpu.fill(y, T::default())?;
        if keys == 0 {
            return Ok(());
        }
        let head = row / queries;
        let (scores, line) = room.split_at_mut(keys);
        let (first, scores) = (seen.start, &mut scores[..seen.len()]);
        self.scores(cpu, inputs, row, seen, scores, line)?;
        let sink = inputs.sinks.map(|sinks| sinks[head % heads].wide());
        let mut largest = sink.unwrap_or(f64::NEG_INFINITY);
        cpu.pieces(scores.len(), 1, |piece| {
            for score in &scores[piece] {
                let score = score.wide();
                // What is not a number stays.
                if score > largest || score.is_nan() {
                    largest = score;
                }
            }
            Ok(())
        })?;
        if largest == f64::NEG_INFINITY {
            let nothing = if self.op.zeros { 0.0 } else { f64::NAN };
            return cpu.fill(y, T::of(nothing));
        }
        let mut sum = T::of(sink.map_or(0.0, |sink| (sink - largest).exp()));
        let first = self.key_head(head) * keys + first;
        let cost = value_size.saturating_add(COST);
        cpu.pieces(scores.len(), cost, |piece| {
            for j in piece {
                let weight = T::of((scores[j].wide() - largest).exp());
                sum += weight;
                let line = &mut line[..value_size];
                let value = inputs.value.line((first + j) * value_size, line);
                cpu.pieces(value_size, 1, |piece| {
                    for (y, &value) in y[piece.clone()].iter_mut().zip(&value[piece]) {
                        *y += weight * value;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })?;
        cpu.pieces(value_size, 1, |piece| {
            y[piece].iter_mut().for_each(|y| *y = *y / sum);
            Ok(())
        })
    }
}

impl<T: Real> Kernel for Typed<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, rows) = (io.cpu(), &self.rows);
        let y = io.output::<T>(0);
        if y.is_empty() {
            return Ok(());
        }
        let Sizes {
            batch,
            heads,
            queries,
            keys,
            size,
            value_size,
            ..
        } = rows.sizes;
        let inputs = Inputs {
            query: io.input(0),
            key: Stored::of(io, 1, self.steps),
            value: Stored::of(io, 2, self.steps),
            bias: io.optional(3),
            sinks: io.optional(6),
        };
        let seen = rows.sight.seen(io.optional(4), io.optional(5));
        let scratch = io.thread_scratch::<T>(rows.room());
        let each = size.saturating_add(value_size).saturating_add(COST);
        let cost = keys.saturating_mul(each);
        let count = batch * heads * queries;
        cpu.rows_with(
            count,
            by(y, value_size),
            scratch,
            cost,
            |piece, y, scores, cpu| {
                for (row, y) in piece.zip(y.chunks_exact_mut(value_size)) {
                    let seen = seen.keys(row / (heads * queries), row % queries);
                    rows.row(cpu, &inputs, row, seen, scores, y)?;
                }
                Ok(())
            },
        )
    }

    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<T>(self.rows.room())
    }
}
