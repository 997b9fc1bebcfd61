//! Loops over several tensors of one index space.

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
    let own = contiguous_strides(shape);
    let missing = target.len().saturating_sub(shape.len());
    (0..target.len())
        .map(|d| {
            if d < missing || shape[d - missing] == 1 {
                0
            } else {
                own[d - missing]
            }
        })
        .collect()
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
                    if (0..N).all(|t| outer_step[t] == step[t] * n as isize) =>
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

    /// Calls `f` with the offset of every row in each tensor, in order.
    pub fn rows(&self, mut f: impl FnMut([isize; N])) {
        self.each_row(&mut f);
    }

    /// Calls `f` with the offset of every element in each tensor, in order.
    pub fn elements(&self, mut f: impl FnMut([isize; N])) {
        self.each_element(&mut f);
    }

    // Closures are behind pointers so that the loops are compiled once for each `N`, not for each closure.

    fn each_row(&self, f: &mut dyn FnMut([isize; N])) {
        if self.row().0 > 0 {
            descend(self.outer(), [0; N], f);
        }
    }

    fn each_element(&self, f: &mut dyn FnMut([isize; N])) {
        let (n, step) = self.row();
        self.each_row(&mut |mut at| {
            for _ in 0..n {
                f(at);
                for (a, s) in at.iter_mut().zip(step) {
                    *a += s;
                }
            }
        });
    }
}

fn descend<const N: usize>(
    dims: &[(usize, [isize; N])],
    mut at: [isize; N],
    f: &mut dyn FnMut([isize; N]),
) {
    let Some((&(n, step), inner)) = dims.split_first() else {
        return f(at);
    };
    for _ in 0..n {
        descend(inner, at, f);
        for (a, s) in at.iter_mut().zip(step) {
            *a += s;
        }
    }
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
        let mut seen = Vec::new();
        Walk::<1>::new(&[], [&[]]).elements(|at| seen.push(at));
        assert_eq!(seen, [[0]]);
        let mut count = 0;
        Walk::new(&[3, 0, 2], [&[0, 2, 1]]).elements(|_| count += 1);
        assert_eq!(count, 0);
    }

    #[test]
    fn visits_in_order() {
        let mut seen = Vec::new();
        let at = broadcast_strides(&[2, 1], &[2, 3]);
        Walk::new(&[2, 3], [&at]).elements(|[a]| seen.push(a));
        assert_eq!(seen, [0, 0, 0, 1, 1, 1]);
    }
}
