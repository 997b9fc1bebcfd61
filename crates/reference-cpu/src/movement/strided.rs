//! The one engine behind most data movement: a loop nest that reads by one set of strides and
//! writes by another. It knows elements only by their size.

use bytemuck::Pod;
use kilim_core::Result;

use crate::by_size;
use crate::common::Walk;
use crate::frame::{Io, Kernel};
use kilim_core::DType;

/// A copy from one strided view to another.
#[derive(Clone, Debug)]
pub struct StridedCopy {
    walk: Walk<2>,
    from: isize,
    to: isize,
}

/// Rows up to this length are not worth a call.
const SHORT: usize = 8;
/// Side of the squares that a transposing copy works in: both sides stay in the first-level cache.
const TILE: usize = 16;

impl StridedCopy {
    /// Copies `shape` elements from offset `from` by the first strides to offset `to` by the second.
    pub fn new(
        shape: &[usize],
        (from, read): (isize, &[isize]),
        (to, write): (isize, &[isize]),
    ) -> StridedCopy {
        StridedCopy {
            walk: Walk::new(shape, [read, write]),
            from,
            to,
        }
    }

    pub fn run<T: Pod>(&self, src: &[T], dst: &mut [T]) {
        let (n, [read, write]) = self.walk.row();
        if let Some((&(m, [outer_read, outer_write]), rest)) = self.walk.outer().split_last()
            && n > 1
            && outer_read == 1
            && write == 1
            && read != 1
        {
            let tiles = Tiles {
                rows: m,
                columns: n,
                read,
                write: outer_write,
            };
            self.nest(rest, self.from, self.to, &mut |from, to| {
                tiles.copy(&src[from as usize..], &mut dst[to as usize..]);
            });
            return;
        }
        if (read, write) == (1, 1) && n <= SHORT {
            match n {
                2 => return self.short_rows::<T, 2>(src, dst),
                3 => return self.short_rows::<T, 3>(src, dst),
                4 => return self.short_rows::<T, 4>(src, dst),
                8 => return self.short_rows::<T, 8>(src, dst),
                _ => {}
            }
        }
        self.walk.rows(|[r, w]| {
            let (from, to) = (self.from + r, self.to + w);
            match (read, write) {
                (1, 1) if n > SHORT => {
                    let (from, to) = (from as usize, to as usize);
                    dst[to..to + n].copy_from_slice(&src[from..from + n]);
                }
                (0, 1) => dst[to as usize..to as usize + n].fill(src[from as usize]),
                _ => {
                    let (mut from, mut to) = (from, to);
                    for _ in 0..n {
                        dst[to as usize] = src[from as usize];
                        from += read;
                        to += write;
                    }
                }
            }
        });
    }

    /// Rows of a length that is known to the compiler, the loop around them included: moves instead of calls.
    fn short_rows<T: Pod, const N: usize>(&self, src: &[T], dst: &mut [T]) {
        let (&(m, [read, write]), rest) = match self.walk.outer().split_last() {
            Some(split) => split,
            None => (&(1, [0, 0]), &[][..]),
        };
        self.nest(rest, self.from, self.to, &mut |from, to| {
            for i in 0..m as isize {
                let (from, to) = ((from + i * read) as usize, (to + i * write) as usize);
                let row: Option<&[T; N]> = src[from..].first_chunk();
                if let (Some(row), Some(to)) = (row, dst[to..].first_chunk_mut()) {
                    *to = *row;
                }
            }
        });
    }

    fn nest(
        &self,
        dims: &[(usize, [isize; 2])],
        from: isize,
        to: isize,
        f: &mut dyn FnMut(isize, isize),
    ) {
        match dims.split_first() {
            None => f(from, to),
            Some((&(n, [read, write]), inner)) => {
                for i in 0..n as isize {
                    self.nest(inner, from + i * read, to + i * write, f);
                }
            }
        }
    }

    /// Runs on elements of `dtype`'s size.
    pub fn run_as(&self, dtype: DType, io_in: &[u8], io_out: &mut [u8]) {
        by_size!(dtype, T => self.run::<T>(
            bytemuck::cast_slice(io_in),
            bytemuck::cast_slice_mut(io_out),
        ));
    }
}

/// A matrix read along its columns and written along its rows.
struct Tiles {
    rows: usize,
    columns: usize,
    read: isize,
    write: isize,
}

impl Tiles {
    fn copy<T: Pod>(&self, src: &[T], dst: &mut [T]) {
        for r0 in (0..self.rows).step_by(TILE) {
            let r1 = self.rows.min(r0 + TILE);
            for c0 in (0..self.columns).step_by(TILE) {
                let c1 = self.columns.min(c0 + TILE);
                for r in r0..r1 {
                    let row = r as isize * self.write;
                    let dst = &mut dst[(row + c0 as isize) as usize..(row + c1 as isize) as usize];
                    let mut at = r as isize + c0 as isize * self.read;
                    for d in dst {
                        *d = src[at as usize];
                        at += self.read;
                    }
                }
            }
        }
    }
}

/// Copies from inputs to outputs, one after another.
pub struct Copies {
    pub dtype: DType,
    /// Input, output, how.
    pub copies: Vec<(usize, usize, StridedCopy)>,
}

impl Copies {
    /// From the first input to the first output.
    pub fn one(dtype: DType, copy: StridedCopy) -> Copies {
        Copies {
            dtype,
            copies: vec![(0, 0, copy)],
        }
    }
}

impl Kernel for Copies {
    fn run(&self, io: &mut Io) -> Result<()> {
        let mut current: Option<(usize, &mut [u8])> = None;
        for (input, output, copy) in &self.copies {
            let dst = match current.take() {
                Some((o, bytes)) if o == *output => bytes,
                _ => io.output_bytes(*output),
            };
            copy.run_as(self.dtype, io.input_bytes(*input), dst);
            current = Some((*output, dst));
        }
        Ok(())
    }
}
