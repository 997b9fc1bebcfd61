//! The computing of a run: cut into pieces that threads may share, with a look at what may stop it between them.

mod parts;
#[cfg(threads)]
mod spread;

use std::ops::{Deref, Range};

use bytemuck::Pod;
use kilim_core::interrupt::Meter;
use kilim_core::{Interrupt, Result};

pub use self::parts::{By, Parts, Shared, by};
use crate::threads::Threads;

/// One worker of a run. A kernel walks over large work with [`CpuRun::rows`] or [`CpuRun::split`], which hand it out
/// in pieces and look at the interrupt between them; what cannot be cut into independent pieces counts its
/// operations with [`Meter::pieces`] or [`Meter::spend`].
#[derive(Debug)]
pub struct CpuRun<'a> {
    threads: Threads,
    worker: usize,
    meter: Meter<'a>,
}

impl<'a> Deref for CpuRun<'a> {
    type Target = Meter<'a>;

    fn deref(&self) -> &Meter<'a> {
        &self.meter
    }
}

impl<'a> CpuRun<'a> {
    /// The thread that hands out work to so many, itself included.
    pub fn new(threads: Threads, interrupt: &'a Interrupt) -> CpuRun<'a> {
        CpuRun {
            threads,
            worker: 0,
            meter: Meter::new(interrupt),
        }
    }

    /// A thread that does pieces of another one's work.
    #[cfg(threads)]
    pub(super) fn of_pool(worker: usize, interrupt: &'a Interrupt) -> CpuRun<'a> {
        CpuRun {
            worker,
            ..CpuRun::new(Threads::SINGLE, interrupt)
        }
    }

    #[cfg(test)]
    pub(super) fn worker(&self) -> usize {
        self.worker
    }

    /// The number of threads, the calling one included; one within a piece that is one of several.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Whether work of this cost gains nothing from being cut: it is short, and worth one thread only.
    pub fn is_short(&self, cost: usize) -> bool {
        cost < self.piece() && self.threads.worth(cost, 1, self.piece()) == 1
    }

    /// Like [`Meter::pieces`] for items that depend on each other in no way: the pieces are given to all threads, in
    /// any order. `work` counts and splits further with the worker that it is given, and never with one from outside.
    /// A split within one of several pieces stays on that piece's thread.
    ///
    /// # Errors
    /// Those of `work`, and `Aborted` where the run is to stop. Pieces that were not begun are left out then.
    #[inline]
    pub fn split(
        &self,
        items: usize,
        cost: usize,
        work: impl Fn(Range<usize>, &CpuRun) -> Result<()> + Sync,
    ) -> Result<()> {
        #[cfg(threads)]
        if let threads @ 2.. = self.threads.worth(items, cost, self.piece()) {
            return spread::spread(threads, items, cost, self, &work);
        }
        self.long_pieces(items, cost, |piece| work(piece, self))
    }

    /// [`CpuRun::split`] over `rows` rows of one output or several: `work` is given the numbers of the rows of a piece,
    /// and these rows of each of the `outputs`.
    ///
    /// # Errors
    /// As [`CpuRun::split`].
    #[inline]
    pub fn rows<P: Parts>(
        &self,
        rows: usize,
        outputs: P,
        cost: usize,
        work: impl Fn(Range<usize>, P::Part<'_>, &CpuRun) -> Result<()> + Sync,
    ) -> Result<()> {
        let outputs = outputs.shared();
        self.split(rows, cost, |piece, cpu| {
            // SAFETY: the pieces of a split are disjoint, and the outputs are borrowed until it is over.
            let part = unsafe { P::part(outputs, piece.clone()) };
            work(piece, part, cpu)
        })
    }

    /// [`CpuRun::rows`] with scratch memory: each thread has an equal part of it, not cleared, as
    /// [`Io::thread_scratch`](crate::Io::thread_scratch) gives it.
    ///
    /// # Errors
    /// As [`CpuRun::split`].
    #[inline]
    pub fn rows_with<P: Parts, S: Send + 'static>(
        &self,
        rows: usize,
        outputs: P,
        scratch: &mut [S],
        cost: usize,
        work: impl Fn(Range<usize>, P::Part<'_>, &mut [S], &CpuRun) -> Result<()> + Sync,
    ) -> Result<()> {
        let (threads, size) = (self.threads(), scratch.len() / self.threads());
        let scratch = by(scratch, size).shared();
        self.rows(rows, outputs, cost, |piece, part, cpu| {
            // A worker that was given a piece has its own number in that split only.
            let worker = if threads == 1 { 0 } else { cpu.worker };
            // SAFETY: a worker does one piece at a time, and its number is its own among those of a split.
            let own = unsafe { scratch.rows(worker..worker + 1) };
            work(piece, part, own, cpu)
        })
    }

    /// Copies `from` to `to`, which are as long.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    #[inline]
    pub fn copy<T: Pod + Send + Sync>(&self, from: &[T], to: &mut [T]) -> Result<()> {
        if self.is_short(size_of_val(to) / BYTES) {
            self.spend(size_of_val(to) / BYTES)?;
            to.copy_from_slice(from);
            return Ok(());
        }
        self.copy_bytes(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to))
    }

    fn copy_bytes(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        assert_eq!(from.len(), to.len(), "a copy is as long as what is copied");
        let lines = to.len().div_ceil(BYTES);
        self.rows(lines, by(to, BYTES), 1, |piece, to, _| {
            to.copy_from_slice(&from[piece.start * BYTES..][..to.len()]);
            Ok(())
        })
    }

    /// Writes `value` to every element of `to`.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    #[inline]
    pub fn fill<T: Pod + Send + Sync>(&self, to: &mut [T], value: T) -> Result<()> {
        if self.is_short(size_of_val(to) / BYTES) {
            self.spend(size_of_val(to) / BYTES)?;
            to.fill(value);
            return Ok(());
        }
        let cost = size_of::<T>().div_ceil(BYTES);
        self.rows(to.len(), by(to, 1), cost, |_, to, _| {
            to.fill(value);
            Ok(())
        })
    }
}

/// Bytes that are copied in one operation.
const BYTES: usize = 8;
