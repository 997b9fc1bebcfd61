//! The one engine behind most data movement: a loop nest that reads by one set of strides and
//! writes by another. It knows elements only by their size.

use std::ops::Range;

use bytemuck::Pod;
use kilim_core::{DType, Result};
use kilim_host::by_size;
use kilim_host::elements::Walk;
use kilim_host::{CpuRun, Io, Kernel, by};

/// A loop of a copy: how often, and the strides of reading and writing.
type Loop = (usize, [isize; 2]);

/// A copy from one strided view to another.
#[derive(Clone, Debug)]
pub struct StridedCopy {
    /// Outermost first.
    outer: Vec<Loop>,
    plane: Plane,
    from: isize,
    to: isize,
}

/// Rows up to this length are not worth a call.
const SHORT: usize = 8;
/// Side of the squares that a transposing copy works in: both sides stay in the first-level cache.
const TILE: usize = 16;
/// Operations of an element.
const COST: usize = 2;

impl StridedCopy {
    /// Copies `shape` elements from offset `from` by the first strides to offset `to` by the second.
    pub fn new(
        shape: &[usize],
        (from, read): (isize, &[isize]),
        (to, write): (isize, &[isize]),
    ) -> StridedCopy {
        let walk = Walk::new(shape, [read, write]);
        let (outer, rows) = match walk.outer().split_last() {
            Some((rows, outer)) => (outer.to_vec(), *rows),
            None => (Vec::new(), (1, [0, 0])),
        };
        StridedCopy {
            outer,
            plane: Plane {
                rows,
                row: walk.row(),
            },
            from,
            to,
        }
    }

    /// Copies the elements.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn run<T: Pod + Send + Sync>(&self, cpu: &CpuRun, src: &[T], dst: &mut [T]) -> Result<()> {
        self.cut(cpu, &self.outer, (self.from, self.to), src, dst)
    }

    /// Copies all of some loops and the planes within, in pieces.
    fn cut<T: Pod + Send + Sync>(
        &self,
        cpu: &CpuRun,
        outer: &[Loop],
        (from, to): (isize, isize),
        src: &[T],
        dst: &mut [T],
    ) -> Result<()> {
        let plane = self.plane.rows.0.saturating_mul(self.plane.row.0);
        let size = outer.iter().fold(plane, |n, l| n.saturating_mul(l.0));
        if size == 0 {
            return Ok(());
        }
        if cpu.is_short(size.saturating_mul(COST)) {
            cpu.spend(COST * size)?;
            self.nest(outer, from, to, src, dst);
            return Ok(());
        }
        let Some((&(n, [read, write]), inner)) = outer.split_first() else {
            return self.plane.cut(cpu, (from, to), src, dst);
        };
        let cost = COST.saturating_mul(size / n);
        let part = |cpu: &CpuRun, i: usize, to: isize, dst: &mut [T]| {
            let from = from + i as isize * read;
            if cost < cpu.piece() {
                self.nest(inner, from, to, src, dst);
                return Ok(());
            }
            self.cut(cpu, inner, (from, to), src, dst)
        };
        if write <= self.plane.last(1) + last(inner, 1) {
            // What one turn of the loop writes lies among what another one does.
            return cpu.pieces(n, cost, |piece| {
                let mut turns = piece.into_iter();
                turns.try_for_each(|i| part(cpu, i, to + i as isize * write, dst))
            });
        }
        let rows = by(&mut dst[to as usize..], write as usize);
        cpu.rows(n, rows, cost, |piece, dst, cpu| {
            let first = piece.start;
            let mut turns = piece.into_iter();
            turns.try_for_each(|i| part(cpu, i, (i - first) as isize * write, dst))
        })
    }

    fn nest<T: Pod>(&self, outer: &[Loop], from: isize, to: isize, src: &[T], dst: &mut [T]) {
        match outer.split_first() {
            None => self.plane.copy(0..self.plane.rows.0, from, to, src, dst),
            Some((&(n, [read, write]), inner)) => {
                for i in 0..n as isize {
                    self.nest(inner, from + i * read, to + i * write, src, dst);
                }
            }
        }
    }

    /// [`StridedCopy::run`] on elements of `dtype`'s size.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn run_as(&self, cpu: &CpuRun, dtype: DType, src: &[u8], dst: &mut [u8]) -> Result<()> {
        by_size!(dtype, T => self.run::<T>(
            cpu,
            bytemuck::cast_slice(src),
            bytemuck::cast_slice_mut(dst),
        ))
    }
}

/// The offset of the last element of some loops, on the side that is read or written.
fn last(loops: &[Loop], side: usize) -> isize {
    let each = loops
        .iter()
        .map(|(n, steps)| (*n as isize - 1) * steps[side]);
    each.sum()
}

/// The two innermost loops.
#[derive(Clone, Debug)]
struct Plane {
    rows: Loop,
    row: Loop,
}

impl Plane {
    fn last(&self, side: usize) -> isize {
        last(&[self.rows, self.row], side)
    }

    /// Copies all rows, in pieces.
    fn cut<T: Pod + Send + Sync>(
        &self,
        cpu: &CpuRun,
        (from, to): (isize, isize),
        src: &[T],
        dst: &mut [T],
    ) -> Result<()> {
        let (m, [outer_read, outer_write]) = self.rows;
        let (n, [read, write]) = self.row;
        // Rows that are copied together.
        let strip = if self.turns() { TILE } else { 1 };
        let cost = COST.saturating_mul(n).saturating_mul(strip);
        if cost >= cpu.piece() {
            for first in (0..m).step_by(strip) {
                let rows = strip.min(m - first);
                let from = from + first as isize * outer_read;
                let to = to + first as isize * outer_write;
                cpu.pieces(n, COST * rows, |piece| {
                    let column = piece.start as isize;
                    let part = Plane {
                        rows: (rows, self.rows.1),
                        row: (piece.len(), self.row.1),
                    };
                    part.copy(0..rows, from + column * read, to + column * write, src, dst);
                    Ok(())
                })?;
            }
            return Ok(());
        }
        let strips = m.div_ceil(strip);
        let within = |strips: Range<usize>| strips.start * strip..m.min(strips.end * strip);
        if outer_write <= last(&[self.row], 1) {
            return cpu.pieces(strips, cost, |piece| {
                self.copy(within(piece), from, to, src, dst);
                Ok(())
            });
        }
        let outputs = by(&mut dst[to as usize..], outer_write as usize * strip);
        cpu.rows(strips, outputs, cost, |piece, dst, _| {
            let rows = within(piece);
            let from = from + rows.start as isize * outer_read;
            self.copy(0..rows.len(), from, 0, src, dst);
            Ok(())
        })
    }

    /// Whether columns are read, and rows written.
    fn turns(&self) -> bool {
        let (_, [outer_read, _]) = self.rows;
        let (n, [read, write]) = self.row;
        n > 1 && outer_read == 1 && write == 1 && read != 1
    }

    /// Copies some rows.
    fn copy<T: Pod>(&self, rows: Range<usize>, from: isize, to: isize, src: &[T], dst: &mut [T]) {
        let (_, [outer_read, outer_write]) = self.rows;
        let (n, [read, write]) = self.row;
        let first = rows.start as isize;
        let (from, to) = (from + first * outer_read, to + first * outer_write);
        if self.turns() {
            let (src, dst) = (&src[from as usize..], &mut dst[to as usize..]);
            let turn = match n {
                3 if outer_write == 3 => Self::interleave::<T, 3>,
                4 if outer_write == 4 => Self::interleave::<T, 4>,
                _ => Self::turn::<T>,
            };
            return turn(self, rows.len(), src, dst);
        }
        if (read, write) == (1, 1) {
            let short = match n {
                2 => Self::short_rows::<T, 2>,
                3 => Self::short_rows::<T, 3>,
                4 => Self::short_rows::<T, 4>,
                8 => Self::short_rows::<T, 8>,
                _ => Self::long_rows::<T>,
            };
            return short(self, rows.len(), from, to, src, dst);
        }
        for i in 0..rows.len() as isize {
            let (mut from, mut to) = (from + i * outer_read, to + i * outer_write);
            if (read, write) == (0, 1) {
                dst[to as usize..to as usize + n].fill(src[from as usize]);
                continue;
            }
            for _ in 0..n {
                dst[to as usize] = src[from as usize];
                from += read;
                to += write;
            }
        }
    }

    /// Rows that lie in one piece.
    fn long_rows<T: Pod>(&self, rows: usize, from: isize, to: isize, src: &[T], dst: &mut [T]) {
        let (_, [read, write]) = self.rows;
        let n = self.row.0;
        for i in 0..rows as isize {
            let (from, to) = ((from + i * read) as usize, (to + i * write) as usize);
            let (src, dst) = (&src[from..from + n], &mut dst[to..to + n]);
            if n > SHORT {
                dst.copy_from_slice(src);
            } else {
                dst.iter_mut().zip(src).for_each(|(to, from)| *to = *from);
            }
        }
    }

    /// Rows of a length that is known to the compiler, the loop around them included: moves instead of calls.
    fn short_rows<T: Pod, const N: usize>(
        &self,
        rows: usize,
        from: isize,
        to: isize,
        src: &[T],
        dst: &mut [T],
    ) {
        let (_, [read, write]) = self.rows;
        for i in 0..rows as isize {
            let (from, to) = ((from + i * read) as usize, (to + i * write) as usize);
            let row: Option<&[T; N]> = src[from..].first_chunk();
            if let (Some(row), Some(to)) = (row, dst[to..].first_chunk_mut()) {
                *to = *row;
            }
        }
    }

    /// A matrix of few columns, such as the colours of a picture, that is read along its columns and written along its rows,
    /// which lie one behind another.
    fn interleave<T: Pod, const N: usize>(&self, rows: usize, src: &[T], dst: &mut [T]) {
        let (_, [read, _]) = self.row;
        let columns: [&[T]; N] = std::array::from_fn(|c| &src[c * read as usize..][..rows]);
        let (to, _) = dst.as_chunks_mut::<N>();
        for (i, to) in to[..rows].iter_mut().enumerate() {
            *to = std::array::from_fn(|c| columns[c][i]);
        }
    }

    /// A matrix that is read along its columns and written along its rows.
    fn turn<T: Pod>(&self, rows: usize, src: &[T], dst: &mut [T]) {
        let (_, [_, write]) = self.rows;
        let (columns, [read, _]) = self.row;
        for r0 in (0..rows).step_by(TILE) {
            let r1 = rows.min(r0 + TILE);
            for c0 in (0..columns).step_by(TILE) {
                let c1 = columns.min(c0 + TILE);
                for r in r0..r1 {
                    let row = r as isize * write;
                    let dst = &mut dst[(row + c0 as isize) as usize..(row + c1 as isize) as usize];
                    let mut at = r as isize + c0 as isize * read;
                    for d in dst {
                        *d = src[at as usize];
                        at += read;
                    }
                }
            }
        }
    }
}

/// Copies rows of `n` elements that lie one after another in `src` to `dst`, from `to` on and `step` elements apart.
pub fn spread_rows<T: Pod>(n: usize, src: &[T], (to, step): (usize, usize), dst: &mut [T]) {
    let rows = src.len() / n.max(1);
    let plane = Plane {
        rows: (rows, [n as isize, step as isize]),
        row: (n, [1, 1]),
    };
    plane.copy(0..rows, 0, to as isize, src, dst);
}

/// Copies from inputs to outputs, one after another.
pub struct Copies {
    pub dtype: DType,
    /// Input, output, how.
    pub copies: Vec<(usize, usize, StridedCopy)>,
}

impl Copies {
    /// One copy, from the first input to the first output.
    pub fn one(dtype: DType, copy: StridedCopy) -> Copies {
        Copies {
            dtype,
            copies: vec![(0, 0, copy)],
        }
    }
}

impl Kernel for Copies {
    fn run(&self, io: &mut Io) -> Result<()> {
        let cpu = io.cpu();
        let mut current: Option<(usize, &mut [u8])> = None;
        for (input, output, copy) in &self.copies {
            let dst = match current.take() {
                Some((o, bytes)) if o == *output => bytes,
                _ => io.output_bytes(*output),
            };
            copy.run_as(cpu, self.dtype, io.input_bytes(*input), dst)?;
            current = Some((*output, dst));
        }
        Ok(())
    }
}
