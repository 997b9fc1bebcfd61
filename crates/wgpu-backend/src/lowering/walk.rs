//! Shapes as kernels walk them.

use super::{Lowers, refuse};
use crate::shaders;

/// Dimensions that a shader's index arithmetic handles.
pub(crate) const MAX_RANK: usize = 8;

/// Row-major strides in elements.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut out = vec![1usize; shape.len()];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        out[i] = out[i + 1].saturating_mul(shape[i + 1]);
    }
    out
}

/// Strides of `shape` read under numpy broadcasting to `to`: zero where it is repeated.
pub(crate) fn broadcast_strides(shape: &[usize], to: &[usize]) -> Lowers<Vec<usize>> {
    if shape.len() > to.len() {
        return refuse(format!("{shape:?} does not broadcast to {to:?}"));
    }
    let own = strides(shape);
    let missing = to.len() - shape.len();
    let mut out = vec![0; to.len()];
    for (i, &d) in shape.iter().enumerate() {
        if d == to[missing + i] {
            out[missing + i] = if d == 1 { 0 } else { own[i] };
        } else if d != 1 {
            return refuse(format!("{shape:?} does not broadcast to {to:?}"));
        }
    }
    Ok(out)
}

/// [`broadcast_strides`] as steps.
pub(crate) fn broadcast_steps(shape: &[usize], to: &[usize]) -> Lowers<Vec<i64>> {
    Ok(signed(&broadcast_strides(shape, to)?))
}

/// Strides as steps, which may go back.
pub(crate) fn signed(strides: &[usize]) -> Vec<i64> {
    strides.iter().map(|&s| s as i64).collect()
}

/// Elements before, along and behind an axis.
pub(crate) fn around(shape: &[usize], axis: usize) -> [usize; 3] {
    [
        shape[..axis].iter().product(),
        shape[axis],
        shape[axis + 1..].iter().product(),
    ]
}

/// The walk of a shader over `dims` with the steps of two tensors.
pub(crate) fn both<'a>(dims: &'a [usize], a: &'a [i64], b: &'a [i64]) -> shaders::Walk<'a> {
    shaders::Walk {
        dims,
        a,
        b,
        rank: dims.len(),
    }
}

/// Merges neighbouring dimensions that all operands walk as one; dimensions of one go. `walks` are
/// each operand's strides. At least one dimension is left.
pub(crate) fn collapse(shape: &[usize], walks: &[Vec<i64>]) -> Lowers<(Vec<usize>, Vec<Vec<i64>>)> {
    let mut dims: Vec<usize> = Vec::new();
    let mut out: Vec<Vec<i64>> = vec![Vec::new(); walks.len()];
    for (i, &d) in shape.iter().enumerate() {
        if d == 1 {
            continue;
        }
        let merges = !dims.is_empty()
            && walks
                .iter()
                .zip(&out)
                .all(|(w, o)| o.last().is_some_and(|&last| last == w[i] * d as i64));
        if merges {
            if let Some(last) = dims.last_mut() {
                *last *= d;
            }
            for (w, o) in walks.iter().zip(&mut out) {
                if let Some(last) = o.last_mut() {
                    *last = w[i];
                }
            }
        } else {
            dims.push(d);
            for (w, o) in walks.iter().zip(&mut out) {
                o.push(w[i]);
            }
        }
    }
    if dims.is_empty() {
        dims.push(1);
        for o in &mut out {
            o.push(0);
        }
    }
    if dims.len() > MAX_RANK {
        return refuse(format!(
            "the GPU kernel walks at most {MAX_RANK} dimensions, these are {}",
            dims.len()
        ));
    }
    Ok((dims, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_collapse_where_all_operands_agree() {
        let shape = [2, 3, 1, 4, 5];
        let dense: Vec<i64> = strides(&shape).iter().map(|&s| s as i64).collect();
        let (dims, walks) = collapse(&shape, std::slice::from_ref(&dense)).unwrap();
        assert_eq!((dims, walks), (vec![120], vec![vec![1]]));
        let channel: Vec<i64> = vec![0, 1, 0, 0, 0];
        let (dims, walks) = collapse(&shape, &[dense, channel]).unwrap();
        assert_eq!(dims, [2, 3, 20]);
        assert_eq!(walks, [vec![60, 20, 1], vec![0, 1, 0]]);
    }
}
