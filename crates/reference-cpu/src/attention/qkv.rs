//! Queries, keys and values taken apart, turned, and written on caches.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::shape_error;
use kilim_core::ops::UnpackQkv;
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use super::rotary::turn;
use crate::by_real;
use crate::common::room::{Room, first};

pub(super) fn build(op: &UnpackQkv, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let rotary = op.rotary();
    by_real!(required(node, 0)?.dtype, T => {
        let turns = move |cpu: &CpuRun, x: &[T], angles: [&[T]; 2], y: &mut [T]| {
            turn(&rotary, 2 * angles[0].len(), cpu, x, angles, y)
        };
        Ok(Box::new(Unpack::new(op, node, turns)?))
    })
}

/// The kernel of [`UnpackQkv`] on numbers `T`. A head turns by `turns`, which is given the head, its cosines and sines, and
/// where to write all its numbers.
pub struct Unpack<T, F> {
    batch: usize,
    steps: usize,
    /// Heads of the queries, and of the keys.
    heads: [usize; 2],
    size: usize,
    pairs: usize,
    /// Whether each batch has cosines of its own, and sines.
    of_batch: [bool; 2],
    room: Room,
    starts: Codec<i64>,
    turns: F,
    number: PhantomData<T>,
}

/// What a node reads.
#[derive(Clone, Copy)]
struct Given<'a, T> {
    packed: &'a [T],
    angles: [&'a [T]; 2],
}

impl<T: Wide, F> Unpack<T, F>
where
    F: Fn(&CpuRun, &[T], [&[T]; 2], &mut [T]) -> Result<()> + Send + Sync,
{
    /// The kernel of a node.
    ///
    /// # Errors
    /// `Shape` where inputs do not fit each other.
    pub fn new(op: &UnpackQkv, node: &NodeSpec, turns: F) -> Result<Unpack<T, F>> {
        let shape = |i: usize| Ok(&required(node, i)?.shape[..]);
        let output = node.outputs.get(1).map(|y| &y.shape[..]);
        let shapes = (shape(0)?, shape(1)?, shape(2)?, shape(3)?, output);
        let (&[batch, steps, _], &[c, _, pairs], &[s, ..], &[.., held, size], Some(&[.., room, _])) =
            shapes
        else {
            return Err(shape_error("the inputs do not fit each other"));
        };
        Ok(Unpack {
            batch,
            steps,
            heads: [op.query_heads, op.key_heads],
            size,
            pairs,
            of_batch: [c, s].map(|batches| batches > 1),
            room: Room {
                held,
                room,
                row: size * size_of::<T>(),
            },
            starts: i64::codec(required(node, 5)?.dtype),
            turns,
            number: PhantomData,
        })
    }

    /// One head of a step of a batch; `head` counts those of queries, keys and values.
    fn head(
        &self,
        cpu: &CpuRun,
        given: Given<T>,
        [batch, step, head]: [usize; 3],
        y: &mut [T],
    ) -> Result<()> {
        let [queries, keys] = self.heads;
        let row = batch * self.steps + step;
        let x = &given.packed[(row * (queries + 2 * keys) + head) * self.size..][..self.size];
        if head >= queries + keys {
            y.copy_from_slice(x);
            return Ok(());
        }
        let mut angles = given.angles;
        for (all, of_batch) in angles.iter_mut().zip(self.of_batch) {
            let row = if of_batch { row } else { step };
            *all = &all[row * self.pairs..][..self.pairs];
        }
        (self.turns)(cpu, x, angles, y)
    }
}

impl<T: Wide, F> Kernel for Unpack<T, F>
where
    F: Fn(&CpuRun, &[T], [&[T]; 2], &mut [T]) -> Result<()> + Send + Sync,
{
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, starts) = (io.cpu(), io.input_bytes(5));
        let given = Given {
            packed: io.input(0),
            angles: [io.input(1), io.input(2)],
        };
        let ([queries, keys], steps, size) = (self.heads, self.steps, self.size);
        let cost = size.saturating_mul(4);
        let y = io.output::<T>(0);
        if !y.is_empty() {
            let rows = self.batch * queries * steps;
            cpu.rows(rows, by(y, size), cost, |piece, y, cpu| {
                for (row, y) in piece.zip(y.chunks_exact_mut(size)) {
                    let (head, step) = (row / steps, row % steps);
                    let at = [head / queries, step, head % queries];
                    self.head(cpu, given, at, y)?;
                }
                Ok(())
            })?;
        }
        let cost = cost.saturating_mul(steps);
        for (output, before) in [(1, queries), (2, queries + keys)] {
            let y = self.room.begun(io, output, 2 + output)?;
            let y: &mut [T] = bytemuck::cast_slice_mut(y);
            if y.is_empty() {
                continue;
            }
            let room = self.room.room * size;
            cpu.rows(self.batch * keys, by(y, room), cost, |piece, y, cpu| {
                for (cache, y) in piece.zip(y.chunks_exact_mut(room)) {
                    let (batch, head) = (cache / keys, cache % keys);
                    let start = first(self.starts.get(starts, batch))?;
                    for step in 0..steps {
                        let at = self.room.place(start, step)?;
                        let y = &mut y[at * size..][..size];
                        self.head(cpu, given, [batch, step, before + head], y)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn writes_on(&self) -> bool {
        self.room.stays()
    }
}
