//! Rotary embedding: pairs of numbers that turn by angles.

use std::marker::PhantomData;
use std::ops::Range;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::shape_error;
use kilim_core::ops::{Angles, RotaryEmbedding};
use kilim_host::elements::{Walk, broadcast_strides};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use crate::by_real;
use crate::common::Real;

/// The rows of a node's data, and where their angles are.
#[derive(Clone, Debug)]
pub struct Turning {
    /// Numbers of a row.
    pub size: usize,
    /// Angles of a row.
    pub angles: usize,
    /// How many numbers of a row turn, from the first on.
    pub turned: usize,
    /// Over the rows of cosines and of sines.
    rows: Walk<2>,
}

impl Turning {
    /// The rows of `node`.
    ///
    /// # Errors
    /// `Shape` where data or angles have no last dimension, or more numbers turn than there are.
    pub fn of(op: &RotaryEmbedding, node: &NodeSpec) -> Result<Turning> {
        let split = |i| match required(node, i)?.shape.split_last() {
            Some((&last, before)) => Ok((last, before)),
            None => Err(shape_error("a last dimension is needed")),
        };
        let ((size, rows), (angles, cosines), (_, sines)) = (split(0)?, split(1)?, split(2)?);
        let turned = op.turned(angles);
        if turned > size {
            return Err(shape_error("more numbers turn than there are")
                .with_expected(format!("at most {size}"))
                .with_got(turned));
        }
        let [cosines, sines] = [cosines, sines].map(|shape| broadcast_strides(shape, rows));
        Ok(Turning {
            size,
            angles,
            turned,
            rows: Walk::new(rows, [&cosines, &sines]),
        })
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Calls `line` for each row of `piece`, in order, with the places of its first cosine and sine.
    ///
    /// # Errors
    /// The first of `line`.
    pub fn lines(
        &self,
        piece: Range<usize>,
        mut line: impl FnMut([usize; 2]) -> Result<()>,
    ) -> Result<()> {
        let (_, steps) = self.rows.row();
        self.rows.spans(piece, |span| {
            let mut at = span.at;
            for _ in 0..span.len {
                line(at.map(|at| at as usize * self.angles))?;
                for (at, step) in at.iter_mut().zip(steps) {
                    *at += step;
                }
            }
            Ok(())
        })
    }
}

pub(super) fn build(
    op: &RotaryEmbedding,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (op, turning) = (op.clone(), Turning::of(op, node)?);
    by_real!(required(node, 0)?.dtype, T => {
        Ok(Box::new(Typed::<T> { op, turning, real: PhantomData }))
    })
}

struct Typed<T> {
    op: RotaryEmbedding,
    turning: Turning,
    real: PhantomData<T>,
}

/// Turns the first `turned` numbers of a row by its own cosines and sines; the others stay as they are.
///
/// # Errors
/// `Aborted` where the run is to stop.
pub(super) fn turn<T: Real>(
    op: &RotaryEmbedding,
    turned: usize,
    cpu: &CpuRun,
    x: &[T],
    angles: [&[T]; 2],
    y: &mut [T],
) -> Result<()> {
    let pairs = turned / 2;
    cpu.pieces(pairs, 4, |piece| {
        for i in piece {
            let both = match op.interleaved {
                true => [2 * i, 2 * i + 1],
                false => [i, pairs + i],
            };
            let own = match op.angles {
                Angles::OfPairs => [i, i],
                Angles::OfNumbers => both,
            };
            let [a, b] = both.map(|at| x[at].wide());
            let [c, d] = own.map(|at| angles.map(|all| all[at].wide()));
            y[both[0]] = T::of(a * c[0] - b * c[1]);
            y[both[1]] = T::of(b * d[0] + a * d[1]);
        }
        Ok(())
    })?;
    y[turned..].copy_from_slice(&x[turned..]);
    Ok(())
}

impl<T: Real> Kernel for Typed<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let [x, cosines, sines] = [0, 1, 2].map(|i| io.input::<T>(i));
        let Turning {
            size,
            angles,
            turned,
            ..
        } = self.turning;
        let y = io.output::<T>(0);
        if y.is_empty() {
            return Ok(());
        }
        let cost = size.saturating_mul(4);
        io.cpu()
            .rows(self.turning.count(), by(y, size), cost, |piece, y, cpu| {
                let from = x[piece.start * size..].chunks_exact(size);
                let mut lines = from.zip(y.chunks_exact_mut(size));
                self.turning.lines(piece, |[cosine, sine]| {
                    let Some((x, y)) = lines.next() else {
                        return Ok(());
                    };
                    let own = [&cosines[cosine..][..angles], &sines[sine..][..angles]];
                    turn(&self.op, turned, cpu, x, own, y)
                })
            })
    }
}
