//! Loops over several tensors of one index space.

use std::ops::Range;

use kilim_core::Result;

/// Row-major strides, in elements.
pub fn contiguous_strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1isize;
    for (stride, &n) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul(n as isize);
    }
    strides
}

/// The strides by which a dense tensor of `shape` is read as one of `target`, to which it
/// broadcasts: zero along the dimensions that repeat.
pub fn broadcast_strides(shape: &[usize], target: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; target.len()];
    broadcast_strides_into(shape, &mut strides);
    strides
}

/// [`broadcast_strides`] for a target of as many dimensions as there are strides.
pub fn broadcast_strides_into(shape: &[usize], strides: &mut [isize]) {
    strides.fill(0);
    let mut step = 1isize;
    for (stride, &n) in strides.iter_mut().rev().zip(shape.iter().rev()) {
        if n != 1 {
            *stride = step;
        }
        step = step.saturating_mul(n as isize);
    }
}

/// A loop nest over `N` tensors, with neighbouring dimensions merged wherever all strides allow it.
/// The innermost loop, the row, is left to the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk<const N: usize> {
    /// Outermost first; the last is the row.
    dims: Vec<(usize, [isize; N])>,
}

impl<const N: usize> Walk<N> {
    /// `strides[t][d]` is the stride of tensor `t` along dimension `d` of `shape`.
    pub fn new(shape: &[usize], strides: [&[isize]; N]) -> Walk<N> {
        let mut dims: Vec<(usize, [isize; N])> = Vec::with_capacity(shape.len().max(1));
        for (d, &n) in shape.iter().enumerate() {
            let step = strides.map(|s| s[d]);
            if n == 1 {
                continue;
            }
            match dims.last_mut() {
                Some((outer, outer_step))
                    if (0..N).all(|t| step[t].checked_mul(n as isize) == Some(outer_step[t])) =>
                {
                    *outer *= n;
                    *outer_step = step;
                }
                _ => dims.push((n, step)),
            }
        }
        if shape.contains(&0) {
            dims = vec![(0, [0; N])];
        } else if dims.is_empty() {
            dims.push((1, [0; N]));
        }
        Walk { dims }
    }

    /// Length and strides of the row.
    pub fn row(&self) -> (usize, [isize; N]) {
        self.dims[self.dims.len() - 1]
    }

    /// The loops outside of the row.
    pub fn outer(&self) -> &[(usize, [isize; N])] {
        &self.dims[..self.dims.len() - 1]
    }

    /// Elements of the index space; more than can be counted are `usize::MAX`.
    pub fn len(&self) -> usize {
        self.dims
            .iter()
            .fold(1, |len, (n, _)| len.saturating_mul(*n))
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.row().0 == 0
    }

    /// Calls `f` with every stretch of a row whose elements have numbers in `range`, in order.
    ///
    /// # Errors
    /// The first of `f`.
    pub fn spans(
        &self,
        range: Range<usize>,
        mut f: impl FnMut(Span<N>) -> Result<()>,
    ) -> Result<()> {
        match range.is_empty() {
            true => Ok(()),
            false => span(&self.dims, self.len(), [0; N], range, 0, &mut f),
        }
    }

    /// The offsets of the elements of a range in each tensor, in order.
    #[cfg(any(test, feature = "testing"))]
    pub fn offsets(&self, range: Range<usize>) -> Vec<[isize; N]> {
        let mut seen = Vec::new();
        let (_, step) = self.row();
        let all = self.spans(range, |span| {
            assert_eq!(span.first, seen.len());
            for i in 0..span.len as isize {
                seen.push(std::array::from_fn(|t| span.at[t] + i * step[t]));
            }
            Ok(())
        });
        all.unwrap();
        seen
    }

    /// Calls `f` with the offset of every row in each tensor, in order.
    ///
    /// # Errors
    /// The first of `f`.
    pub fn rows(&self, mut f: impl FnMut([isize; N]) -> Result<()>) -> Result<()> {
        match self.is_empty() {
            true => Ok(()),
            false => descend(self.outer(), [0; N], &mut f),
        }
    }
}

/// Neighbours in a row of a [`Walk`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span<const N: usize> {
    /// The number of the first, counted from the beginning of the range that was asked for.
    pub first: usize,
    /// How many there are.
    pub len: usize,
    /// The offset of the first in each tensor; the strides of the others are those of [`Walk::row`].
    pub at: [isize; N],
}

impl<const N: usize> Span<N> {
    /// The offset of tensor `t`, which is in the tensor.
    pub fn start(&self, t: usize) -> usize {
        self.at[t] as usize
    }
}

// Closures are behind pointers so that the loops are compiled once for each `N`, not for each closure.

fn descend<const N: usize>(
    dims: &[(usize, [isize; N])],
    mut at: [isize; N],
    f: &mut dyn FnMut([isize; N]) -> Result<()>,
) -> Result<()> {
    let Some((&(n, step), inner)) = dims.split_first() else {
        return f(at);
    };
    for _ in 0..n {
        descend(inner, at, f)?;
        for (a, s) in at.iter_mut().zip(step) {
            *a += s;
        }
    }
    Ok(())
}

/// The stretches of `range` in `dims`, which have `size` elements; `first` elements were before.
fn span<const N: usize>(
    dims: &[(usize, [isize; N])],
    size: usize,
    mut at: [isize; N],
    range: Range<usize>,
    first: usize,
    f: &mut dyn FnMut(Span<N>) -> Result<()>,
) -> Result<()> {
    let Some((&(n, step), inner)) = dims.split_first() else {
        return Ok(());
    };
    let size = size / n;
    let skipped = range.start / size;
    for (a, s) in at.iter_mut().zip(step) {
        *a += skipped as isize * s;
    }
    if inner.is_empty() {
        let len = range.len();
        return f(Span { first, len, at });
    }
    let (mut begin, mut base) = (range.start, skipped * size);
    while begin < range.end {
        let end = range.end.min(base + size);
        let before = first + (begin - range.start);
        span(inner, size, at, begin - base..end - base, before, f)?;
        (begin, base) = (end, end);
        for (a, s) in at.iter_mut().zip(step) {
            *a += s;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_what_is_contiguous() {
        let shape = [2, 3, 4];
        let a = contiguous_strides(&shape);
        let b = broadcast_strides(&[4], &shape);
        assert_eq!(Walk::new(&shape, [&a, &a]).row(), (24, [1, 1]));
        let w = Walk::new(&shape, [&a, &b]);
        assert_eq!(w.row(), (4, [1, 1]));
        assert_eq!(w.outer(), &[(6, [4, 0])]);
    }

    #[test]
    fn walks_scalars_and_nothing() {
        assert_eq!(Walk::<1>::new(&[], [&[]]).offsets(0..1), [[0]]);
        let empty = Walk::new(&[3, 0, 2], [&[0, 2, 1]]);
        assert!(empty.is_empty());
        assert_eq!(empty.len(), 0);
        empty.rows(|_| panic!("there are no rows")).unwrap();
    }

    #[test]
    fn visits_in_order() {
        let at = broadcast_strides(&[2, 1], &[2, 3]);
        let walk = Walk::new(&[2, 3], [&at]);
        assert_eq!(walk.offsets(0..6).concat(), [0, 0, 0, 1, 1, 1]);
        let mut rows = Vec::new();
        walk.rows(|[a]| {
            rows.push(a);
            Ok(())
        })
        .unwrap();
        assert_eq!(rows, [0, 1]);
    }

    #[test]
    fn every_range_is_a_part_of_the_whole() {
        let shape = [3, 2, 4, 5];
        let a = broadcast_strides(&[3, 1, 4, 5], &shape);
        let b = broadcast_strides(&[2, 1, 5], &shape);
        let walk = Walk::new(&shape, [&a, &b]);
        let all = walk.offsets(0..walk.len());
        assert_eq!(all.len(), 120);
        for first in 0..120 {
            for end in first..=120 {
                assert_eq!(walk.offsets(first..end), all[first..end], "{first}..{end}");
            }
        }
    }
}
