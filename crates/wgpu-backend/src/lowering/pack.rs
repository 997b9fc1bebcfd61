//! Arrangements of constants that kernels read.

use std::borrow::Cow;

use kilim_core::memory::vec_of;
use kilim_core::tensor::element_count;
use kilim_core::{DType, Result, Tensor};

use super::walk::strides;
use crate::device::storage;

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
        let (PackKind::Permute {
            shape,
            perm,
            padded,
        }
        | PackKind::Bytes {
            shape,
            perm,
            padded,
        }) = self;
        let dtype = tensor.dtype();
        let (data, size) = match self {
            PackKind::Permute { .. } => (
                storage::to_device(tensor)?,
                storage::words(dtype).map_or(dtype.size(), |words| 4 * words),
            ),
            PackKind::Bytes { .. } if dtype == DType::U8 => {
                (tensor.read()?.iter().map(|b| b ^ 0x80).collect(), 1)
            }
            PackKind::Bytes { .. } => (Cow::Borrowed(tensor.read()?), 1),
        };
        let words: &[u8] = &data;
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
                words.get(from * size..(from + 1) * size),
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
}
