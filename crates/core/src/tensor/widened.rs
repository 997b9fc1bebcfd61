//! Tensors in half precision whose elements are wanted in `float32`.

use super::later::{Buffer, Later};
use super::read::cast_slice_mut;
use super::{Data, Element, Tensor, byte_count};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use std::sync::Arc;

impl Tensor {
    /// The elements of a `float16` or `bfloat16` tensor in `float32`, computed when they are read.
    ///
    /// # Errors
    /// `DType` where the elements are of another type, `Limit` where the bytes cannot be addressed.
    pub fn widened(&self) -> Result<Tensor> {
        if !matches!(self.dtype, DType::F16 | DType::BF16) {
            return Err(
                Error::new(ErrorCode::DType, "a tensor in half precision is needed")
                    .with_expected("float16 or bfloat16")
                    .with_got(self.dtype),
            );
        }
        let len = byte_count(DType::F32, &self.shape)?;
        let later = Later::widened(len, self.clone());
        let buffer = Buffer::Later(Arc::new(later));
        Tensor::part(DType::F32, &self.shape, buffer, 0, len)
    }

    /// The tensor of `float16` or `bfloat16` whose elements these are, in the same order: a reader that widens them itself
    /// needs no copy of twice the size. `None` where this is not what [`Tensor::widened`] gave, or a part or another shape
    /// of it.
    pub fn narrow(&self) -> Option<Tensor> {
        let Data::Bytes {
            buffer: Buffer::Later(later),
            offset,
            ..
        } = &self.data
        else {
            return None;
        };
        let source = later.as_widened().filter(|_| self.dtype == DType::F32)?;
        let Data::Bytes {
            buffer,
            offset: first,
            ..
        } = &source.data
        else {
            return None;
        };
        let size = source.dtype.size();
        let first = first + offset / size_of::<f32>() * size;
        let buffer = buffer.clone();
        Tensor::part(source.dtype, &self.shape, buffer, first, self.len() * size).ok()
    }
}

/// Writes elements of a tensor in half precision from the given one on.
pub(super) fn widen(half: &Tensor, from: usize, to: &mut [u8]) -> Result<()> {
    fn each<H: Element + Into<f32>>(half: &Tensor, from: usize, to: &mut [f32]) -> Result<()> {
        let half = &half.as_slice::<H>()?[from..][..to.len()];
        to.iter_mut().zip(half).for_each(|(to, &h)| *to = h.into());
        Ok(())
    }
    let to = cast_slice_mut(to)?;
    match half.dtype {
        DType::F16 => each::<half::f16>(half, from, to),
        _ => each::<half::bf16>(half, from, to),
    }
}
