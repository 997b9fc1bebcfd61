//! What the passes compute of constants themselves.

use crate::error::{Result, shape_error};
use crate::tensor::{AlignedBytes, Tensor};
use std::sync::Arc;

impl Tensor {
    /// The tensor with its dimensions in another order: dimension `i` of the result is dimension
    /// `perm[i]` of this one. Shares the bytes where only dimensions of 1 move.
    ///
    /// # Errors
    /// `Shape` where `perm` is no permutation of the dimensions.
    pub fn permuted(&self, perm: &[usize]) -> Result<Tensor> {
        let dims = self.shape();
        let mut seen = vec![false; dims.len()];
        for &p in perm {
            match seen.get_mut(p) {
                Some(s) if !*s => *s = true,
                _ => return Err(shape_error(format!("{perm:?} is no permutation"))),
            }
        }
        if perm.len() != dims.len() {
            return Err(shape_error(format!(
                "the permutation {perm:?} does not fit rank {}",
                dims.len()
            )));
        }
        let shape: Vec<usize> = perm.iter().map(|&p| dims[p]).collect();
        let moving: Vec<usize> = perm.iter().copied().filter(|&p| dims[p] != 1).collect();
        if moving.is_sorted() || self.is_empty() {
            return self.reshaped(&shape);
        }
        if let Ok(texts) = self.texts() {
            let positions: Vec<u64> = (0..texts.len() as u64).collect();
            let moved = Tensor::from_slice(dims, &positions)?.permuted(perm)?;
            let moved = moved.as_slice::<u64>()?.iter();
            let texts: Vec<_> = moved.map(|&i| texts[i as usize].clone()).collect();
            return Tensor::from_texts(&shape, texts);
        }
        let mut strides = vec![1usize; dims.len()];
        for i in (1..dims.len()).rev() {
            strides[i - 1] = strides[i] * dims[i];
        }
        let strides: Vec<usize> = moving.iter().map(|&p| strides[p]).collect();
        let counts: Vec<usize> = moving.iter().map(|&p| dims[p]).collect();
        let mut out = AlignedBytes::zeroed(self.byte_len())?;
        let (from, to) = (self.read()?, out.as_mut_slice());
        match self.dtype().size() {
            1 => gather::<1>(from, to, &counts, &strides),
            2 => gather::<2>(from, to, &counts, &strides),
            4 => gather::<4>(from, to, &counts, &strides),
            8 => gather::<8>(from, to, &counts, &strides),
            _ => gather::<16>(from, to, &counts, &strides),
        }
        Tensor::from_bytes(self.dtype(), &shape, Arc::new(out))
    }
}

/// Writes elements of `N` bytes in the order of `counts`, read at `strides` (in elements).
fn gather<const N: usize>(from: &[u8], to: &mut [u8], counts: &[usize], strides: &[usize]) {
    let (Some((&inner, outer)), Some((&step, outer_strides))) =
        (counts.split_last(), strides.split_last())
    else {
        return;
    };
    let mut index = vec![0usize; outer.len()];
    let mut start = 0usize;
    for row in to.chunks_exact_mut(inner * N) {
        for (i, element) in row.chunks_exact_mut(N).enumerate() {
            let at = (start + i * step) * N;
            element.copy_from_slice(&from[at..at + N]);
        }
        for axis in (0..outer.len()).rev() {
            index[axis] += 1;
            start += outer_strides[axis];
            if index[axis] < outer[axis] {
                break;
            }
            start -= outer_strides[axis] * outer[axis];
            index[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutes() {
        let data: Vec<i32> = (0..24).collect();
        let t = Tensor::from_slice(&[2, 3, 4], &data).unwrap();
        let p = t.permuted(&[2, 0, 1]).unwrap();
        assert_eq!(p.shape(), [4, 2, 3]);
        let got = p.as_slice::<i32>().unwrap();
        for (a, b, c) in (0..4).flat_map(|a| (0..6).map(move |i| (a, i / 3, i % 3))) {
            assert_eq!(got[(a * 2 + b) * 3 + c], data[(b * 3 + c) * 4 + a]);
        }
        assert_eq!(p.permuted(&[1, 2, 0]).unwrap(), t);
        assert!(t.permuted(&[0, 1, 1]).is_err());
        assert!(t.permuted(&[0, 1]).is_err());
        assert!(t.permuted(&[0, 1, 3]).is_err());
    }

    #[test]
    fn permutes_strings() {
        let texts: Vec<Arc<str>> = ["a", "b", "c", "d", "e", "f"].map(Arc::from).to_vec();
        let t = Tensor::from_texts(&[2, 3], texts).unwrap();
        let p = t.permuted(&[1, 0]).unwrap();
        let got = p.texts().unwrap();
        assert!(
            got.iter()
                .map(|t| t.as_ref())
                .eq(["a", "d", "b", "e", "c", "f"])
        );
        assert_eq!(p.permuted(&[1, 0]).unwrap(), t);
    }

    #[test]
    fn permutes_ones_and_nothing() {
        let t = Tensor::from_slice(&[1, 3, 1], &[1u8, 2, 3]).unwrap();
        assert_eq!(
            t.permuted(&[1, 0, 2]).unwrap().read().unwrap(),
            t.read().unwrap()
        );
        let t = Tensor::from_slice::<f32>(&[2, 0], &[]).unwrap();
        assert_eq!(t.permuted(&[1, 0]).unwrap().shape(), [0, 2]);
        let t = Tensor::scalar(1i64).unwrap();
        assert_eq!(t.permuted(&[]).unwrap(), t);
    }
}
