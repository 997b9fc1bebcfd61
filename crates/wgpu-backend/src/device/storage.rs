//! Element types on the device. A tensor there is an array of words of 32 bits: 64-bit types take
//! two (the low one first), half precision two elements a word, and all others a word each. Integers
//! of fewer bits have their sign extended or zeros above, as types of less than a byte have on the
//! host; a `bool` is 0 or 1.

use std::borrow::Cow;
use std::sync::Arc;

use kilim_core::memory::vec_with_room;
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{DType, Result, Tensor};

use crate::shaders::Word;

/// Words of an element; `None` where elements share one, or the type has no place on the device.
pub(crate) fn words(dtype: DType) -> Option<usize> {
    match dtype {
        DType::F16 | DType::BF16 | DType::String => None,
        _ => match dtype.size() {
            16 => None,
            8 => Some(2),
            _ => Some(1),
        },
    }
}

/// Whether tensors of this type can be on the device. Those of half precision are only moved whole
/// and converted, those of `float64` and complex numbers only moved.
pub(crate) fn holds(dtype: DType) -> bool {
    words(dtype).is_some() || matches!(dtype, DType::F16 | DType::BF16)
}

/// Bytes of a tensor on the device.
pub(crate) fn device_bytes(dtype: DType, elements: usize) -> usize {
    match words(dtype) {
        Some(w) => elements.saturating_mul(4 * w),
        None => elements.saturating_mul(dtype.size()).next_multiple_of(4),
    }
}

/// How kernels compute with elements of one word: as a type of WGSL, in so many bits of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub word: Word,
    /// Bits of the word above the element's. A result shifted left and right by as many is wrapped.
    pub spare: usize,
}

/// `None` for types that no kernel computes with as they are.
pub(crate) fn scalar(dtype: DType) -> Option<Scalar> {
    let word = match dtype {
        DType::F32 => Word::F32,
        DType::I32 | DType::I16 | DType::I8 | DType::I4 | DType::I2 => Word::I32,
        DType::U32 | DType::U16 | DType::U8 | DType::U4 | DType::U2 | DType::Bool => Word::U32,
        _ => return None,
    };
    let spare = match dtype {
        DType::Bool => 0,
        _ => 32 - dtype.bits(),
    };
    Some(Scalar { word, spare })
}

/// Whether elements are signed integers of one word.
pub(crate) fn is_signed(dtype: DType) -> bool {
    scalar(dtype).is_some_and(|s| s.word == Word::I32)
}

/// Whether elements are words of their own on the device, and shorter on the host.
fn is_widened(dtype: DType) -> bool {
    words(dtype) == Some(1) && dtype.size() < 4
}

/// A tensor's bytes as the device wants them.
///
/// # Errors
/// `Limit` where memory is short.
pub(crate) fn to_device(tensor: &Tensor) -> Result<Cow<'_, [u8]>> {
    elements_to_device(tensor.dtype(), tensor.read()?)
}

/// Whole elements as the device wants them.
///
/// # Errors
/// `Limit` where memory is short.
pub(crate) fn elements_to_device(dtype: DType, bytes: &[u8]) -> Result<Cow<'_, [u8]>> {
    if !is_widened(dtype) {
        return Ok(Cow::Borrowed(bytes));
    }
    let size = dtype.size();
    let above = 32 - 8 * size as u32;
    let signed = is_signed(dtype);
    let mut out = vec_with_room(bytes.len() / size * 4)?;
    for element in bytes.chunks_exact(size) {
        let mut word = [0; 4];
        word[..size].copy_from_slice(element);
        let word = u32::from_le_bytes(word);
        let word = match dtype {
            DType::Bool => u32::from(word != 0),
            _ if signed => ((word << above) as i32 >> above) as u32,
            _ => word,
        };
        out.extend_from_slice(&word.to_le_bytes());
    }
    Ok(Cow::Owned(out))
}

/// The inverse of [`to_device`].
pub(crate) fn from_device(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Tensor> {
    if !is_widened(dtype) {
        // Half precision ends with a word that may be half full.
        let own = byte_count(dtype, shape)?.min(bytes.len());
        return Tensor::from_raw(dtype, shape, &bytes[..own]);
    }
    let mut out = AlignedBytes::zeroed(byte_count(dtype, shape)?)?;
    let elements = out.as_mut_slice().chunks_exact_mut(dtype.size());
    for (element, word) in elements.zip(bytes.chunks_exact(4)) {
        match dtype {
            DType::Bool => element[0] = u8::from(word != [0; 4]),
            _ => element.copy_from_slice(&word[..element.len()]),
        }
    }
    Tensor::from_bytes(dtype, shape, Arc::new(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back_as_it_went() {
        for dtype in DType::ALL.into_iter().filter(|&d| holds(d)) {
            let ones = (dtype.bits() < 8).then_some(0x01u8);
            let bytes = [ones.unwrap_or(0x81); 8];
            let bytes = if dtype == DType::Bool { [1; 8] } else { bytes };
            let shape = [8 / dtype.size()];
            let tensor = Tensor::from_raw(dtype, &shape, &bytes).unwrap();
            let there = to_device(&tensor).unwrap();
            assert_eq!(there.len(), device_bytes(dtype, shape[0]), "{dtype}");
            assert_eq!(from_device(dtype, &shape, &there).unwrap(), tensor);
        }
        let signed = Tensor::from_slice(&[2], &[-2i8, 3]).unwrap();
        let words = to_device(&signed).unwrap();
        assert_eq!(bytemuck::cast_slice::<u8, i32>(&words), [-2, 3]);
    }
}
