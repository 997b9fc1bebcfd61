//! Arrangements of constants that kernels read.

use std::borrow::Cow;

use kilim_core::backend::TensorSpec;
use kilim_core::memory::{vec_of, vec_with_room};
use kilim_core::tensor::element_count;
use kilim_core::{DType, Result, Tensor};

use super::Lowering;
use super::walk::strides;
use crate::device::storage;
use crate::shaders::{Operand, Packing};

/// An arrangement of a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PackKind {
    /// Seen as a tensor of `shape`, transposed by `perm`, then padded with zeros to `padded` (in
    /// the order of the result). Elements of 32 or 16 bits.
    Permute {
        shape: Vec<usize>,
        perm: Vec<usize>,
        padded: Vec<usize>,
    },
    /// Bytes seen as a tensor of `shape`, transposed by `perm`, then padded with zeros to `padded`: four to a
    /// word and signed, 128 less than they are for `uint8`.
    Bytes {
        shape: Vec<usize>,
        perm: Vec<usize>,
        padded: Vec<usize>,
    },
    /// Elements of a byte as they are, four to a word.
    Words,
}

/// Input `input` of a node in the arrangement `kind`.
pub(crate) struct Pack {
    pub input: usize,
    pub kind: PackKind,
}

impl PackKind {
    /// The bytes of a tensor in this arrangement.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn apply(&self, tensor: &Tensor) -> Result<Vec<u8>> {
        let dtype = tensor.dtype();
        let size = self.element_bytes(dtype);
        match self {
            PackKind::Permute {
                shape,
                perm,
                padded,
            } => {
                let data = storage::to_device(tensor)?;
                permuted(&data, size, [shape, perm, padded])
            }
            PackKind::Bytes {
                shape,
                perm,
                padded,
            } => {
                let data = match dtype {
                    DType::U8 => tensor.read()?.iter().map(|b| b ^ 0x80).collect(),
                    _ => Cow::Borrowed(tensor.read()?),
                };
                permuted(&data, size, [shape, perm, padded])
            }
            PackKind::Words => {
                let bytes = tensor.read()?;
                let whole = bytes.len().next_multiple_of(4);
                let mut out = vec_with_room(whole)?;
                out.extend_from_slice(bytes);
                out.resize(whole, 0);
                Ok(out)
            }
        }
    }

    /// Bytes of a tensor in this arrangement.
    pub fn bytes(&self, spec: &TensorSpec) -> usize {
        let elements = match self {
            PackKind::Permute { padded, .. } | PackKind::Bytes { padded, .. } => padded
                .iter()
                .fold(1, |n: usize, &size| n.saturating_mul(size)),
            PackKind::Words => spec.elements(),
        };
        let size = self.element_bytes(spec.dtype);
        elements.saturating_mul(size).div_ceil(4).saturating_mul(4)
    }

    fn element_bytes(&self, dtype: DType) -> usize {
        match self {
            PackKind::Permute { .. } => {
                storage::words(dtype).map_or(dtype.size(), |words| 4 * words)
            }
            PackKind::Bytes { .. } | PackKind::Words => 1,
        }
    }
}

/// Elements of `size` bytes, of the shape that comes first, transposed by the order that comes second, and padded with zeros to
/// the shape that comes last.
fn permuted(bytes: &[u8], size: usize, by: [&[usize]; 3]) -> Result<Vec<u8>> {
    let [shape, perm, padded] = by;
    let own = strides(shape);
    let walk: Vec<usize> = perm.iter().map(|&p| own[p]).collect();
    let dims: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
    let to = strides(padded);
    let mut out = vec_of(0u8, element_count(padded)?.saturating_mul(size))?;
    let rank = dims.len();
    let count: usize = dims.iter().product();
    let mut at = vec![0usize; rank];
    for _ in 0..count {
        let (mut from, mut into) = (0, 0);
        for d in 0..rank {
            from += at[d] * walk[d];
            into += at[d] * to[d];
        }
        if let (Some(o), Some(i)) = (
            out.get_mut(into * size..(into + 1) * size),
            bytes.get(from * size..(from + 1) * size),
        ) {
            o.copy_from_slice(i);
        }
        for d in (0..rank).rev() {
            at[d] += 1;
            if at[d] < dims[d] {
                break;
            }
            at[d] = 0;
        }
    }
    Ok(out)
}

impl Lowering<'_> {
    /// Input `i`, whose bytes hold numbers of `bits` bits, a divisor of 8. Constants lie four bytes to a word.
    pub fn packed(&mut self, i: usize, bits: usize) -> (Operand, Packing) {
        let (operand, word) = match self.is_known(i) {
            true => (self.pack(i, PackKind::Words), 32),
            false => (Operand::Input(i), 8),
        };
        let shift = (word / bits).trailing_zeros() as usize;
        (operand, Packing { bits, shift })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrangements_have_the_bytes_that_they_say() {
        let bytes = Tensor::from_slice(&[5], &[1u8, 2, 3, 4, 255]).unwrap();
        let halves = Tensor::from_raw(DType::F16, &[3], &[1, 2, 3, 4, 5, 6]).unwrap();
        let permute = |shape, padded| PackKind::Permute {
            shape: vec![shape],
            perm: vec![0],
            padded: vec![padded],
        };
        let signed = PackKind::Bytes {
            shape: vec![5],
            perm: vec![0],
            padded: vec![8],
        };
        for (tensor, kind, want) in [
            (&bytes, PackKind::Words, vec![1, 2, 3, 4, 255, 0, 0, 0]),
            (&bytes, signed, vec![129, 130, 131, 132, 127, 0, 0, 0]),
            (&halves, permute(3, 4), vec![1, 2, 3, 4, 5, 6, 0, 0]),
            (
                &bytes,
                permute(5, 5),
                [1, 2, 3, 4, 255].map(|b| [b, 0, 0, 0]).concat(),
            ),
        ] {
            assert_eq!(kind.bytes(&TensorSpec::of(tensor)), want.len(), "{kind:?}");
            assert_eq!(kind.apply(tensor).unwrap(), want, "{kind:?}");
        }
    }
}
