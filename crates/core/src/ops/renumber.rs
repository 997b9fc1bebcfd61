//! Axes, and numbers along them, for data whose transpose operators see.

use super::axes::{normalize_axes, normalize_axis};
use super::resize::Resize;
use crate::graph::{InferContext, Renumbered};
use crate::order::sort_indices;
use crate::tensor::Tensor;

/// Where `axis` of the transpose by `perm` is in the data.
pub(super) fn axis(axis: i64, perm: &[usize]) -> Option<i64> {
    let axis = normalize_axis(axis, perm.len()).ok()?;
    Some(perm[axis] as i64)
}

/// One number for each axis of the transpose by `perm`, in the order of the data's axes.
pub(super) fn numbers(numbers: &[i64], perm: &[usize]) -> Option<Vec<i64>> {
    if numbers.len() != perm.len() {
        return None;
    }
    let mut all = numbers.to_vec();
    for (&n, &p) in numbers.iter().zip(perm) {
        all[p] = n;
    }
    Some(all)
}

/// The axes of the data that are reduced where `axes` of its transpose by `perm` are, and what becomes of `perm`.
pub(super) fn reduced(axes: &[usize], perm: &[usize], keep_dims: bool) -> (Vec<i64>, Vec<usize>) {
    let mut lying: Vec<usize> = axes.iter().map(|&a| perm[a]).collect();
    lying.sort_unstable();
    let left = match keep_dims {
        true => perm.to_vec(),
        false => {
            let kept = (0..perm.len()).filter(|d| !axes.contains(d));
            let gone = |p: usize| lying.iter().filter(|&&l| l < p).count();
            kept.map(|d| perm[d] - gone(perm[d])).collect()
        }
    };
    (lying.iter().map(|&a| a as i64).collect(), left)
}

/// A Resize whose scales or sizes are constants, in the order of the data's axes.
pub(super) fn resize(op: &Resize, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
    let rank = perm.len();
    let all = (0..rank as i64).collect();
    let axes = normalize_axes(op.axes.as_ref().unwrap_or(&all), rank).ok()?;
    if ctx.optional(1).is_some() {
        return None;
    }
    let mut order: Vec<usize> = (0..axes.len()).collect();
    sort_indices(&mut order, &mut |a, b| perm[axes[a]].cmp(&perm[axes[b]]));
    let mut inputs = Vec::new();
    for i in [2, 3] {
        let Some(input) = ctx.optional(i) else {
            continue;
        };
        let tensor = input.value.as_ref()?;
        if tensor.is_empty() {
            continue;
        }
        if tensor.len() != axes.len() {
            return None;
        }
        let sorted = match tensor.as_slice::<f32>() {
            Ok(s) => {
                let s: Vec<f32> = order.iter().map(|&i| s[i]).collect();
                Tensor::from_slice(&[s.len()], &s)
            }
            Err(_) => {
                let s = tensor.to_i64s().ok()?;
                let s: Vec<i64> = order.iter().map(|&i| s[i]).collect();
                Tensor::from_slice(&[s.len()], &s)
            }
        };
        inputs.push((i, Some(sorted.ok()?)));
    }
    let lying = || order.iter().map(|&i| perm[axes[i]] as i64).collect();
    let op = Resize {
        axes: (axes.len() < rank).then(lying),
        ..op.clone()
    };
    Some(Renumbered {
        inputs,
        ..Renumbered::new(op, perm)
    })
}
