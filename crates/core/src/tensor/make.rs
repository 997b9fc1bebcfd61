//! How tensors come to be, of elements in their various forms.

use std::ops::Range;
use std::sync::Arc;

use super::read::beyond;
use super::{AlignedBytes, Data, Element, Tensor, byte_count, element_count};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::fallible::{vec_of, vec_with_room};
use crate::narrow;

impl Tensor {
    /// All zeros; of strings, all empty.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Tensor> {
        if dtype == DType::String {
            let empty: Arc<str> = Arc::from("");
            return Tensor::from_texts(shape, vec_of(empty, element_count(shape)?)?);
        }
        let len = byte_count(dtype, shape)?;
        Tensor::from_bytes(dtype, shape, Arc::new(AlignedBytes::zeroed(len)?))
    }

    /// Every element is the one of `value`, written when it is read; `Shape` where `value` has another number of
    /// them.
    pub fn filled(shape: &[usize], value: &Tensor) -> Result<Tensor> {
        if value.len() != 1 {
            return Err(Error::new(ErrorCode::Shape, "the value to fill with")
                .with_expected("1 element")
                .with_got(format!("{} elements", value.len())));
        }
        let dtype = value.dtype();
        if let [text] = value.texts().unwrap_or_default() {
            return Tensor::from_texts(shape, vec_of(text.clone(), element_count(shape)?)?);
        }
        value.later(dtype, shape, |value, _, to| {
            let mut line = [0; 64];
            for unit in line.chunks_exact_mut(value.byte_len().max(1)) {
                unit.copy_from_slice(value.read()?);
            }
            let (lines, rest) = to.as_chunks_mut();
            lines.fill(line);
            rest.copy_from_slice(&line[..rest.len()]);
            Ok(())
        })
    }

    /// A tensor of strings.
    ///
    /// # Errors
    /// `Shape` where their number does not fit.
    pub fn from_texts(shape: &[usize], texts: impl Into<Arc<Vec<Arc<str>>>>) -> Result<Tensor> {
        let want = element_count(shape)?;
        let texts = texts.into();
        if texts.len() != want {
            return Err(Error::new(
                ErrorCode::Shape,
                format!("the data of a string tensor of shape {shape:?} has the wrong size"),
            )
            .with_expected(format!("{want} strings"))
            .with_got(format!("{} strings", texts.len())));
        }
        Ok(Tensor {
            dtype: DType::String,
            shape: shape.to_vec(),
            data: Data::Texts(texts),
        })
    }

    /// A tensor from the form that files have: types of less than a byte are packed, the first element in the
    /// lowest bits; all others are as in memory.
    ///
    /// # Errors
    /// `Shape` where the bytes do not fill the shape.
    pub fn from_packed(dtype: DType, shape: &[usize], packed: &[u8]) -> Result<Tensor> {
        if dtype.bits() == 8 * dtype.size() {
            return Tensor::from_raw(dtype, shape, packed);
        }
        let mut bytes = narrow::unpack(packed, dtype.bits(), element_count(shape)?)?;
        if matches!(dtype, DType::I4 | DType::I2) {
            for b in &mut bytes {
                *b = narrow::sign_extended(*b, dtype.bits()) as u8;
            }
        }
        Tensor::from_raw(dtype, shape, &bytes)
    }

    /// Copies `data`, whose length must be that of the shape.
    pub fn from_slice<T: Element>(shape: &[usize], data: &[T]) -> Result<Tensor> {
        Tensor::from_raw(T::DTYPE, shape, bytemuck::cast_slice(data))
    }

    /// Copies little-endian bytes.
    pub fn from_raw(dtype: DType, shape: &[usize], raw: &[u8]) -> Result<Tensor> {
        Tensor::from_bytes(dtype, shape, Arc::new(AlignedBytes::copy_of(raw)?))
    }

    /// A tensor of rank 0.
    pub fn scalar<T: Element>(value: T) -> Result<Tensor> {
        Tensor::from_slice(&[], &[value])
    }

    /// Booleans, one byte each.
    pub fn from_bools(shape: &[usize], data: &[bool]) -> Result<Tensor> {
        let mut bytes = AlignedBytes::zeroed(data.len())?;
        for (to, &b) in bytes.as_mut_slice().iter_mut().zip(data) {
            *to = u8::from(b);
        }
        Tensor::from_bytes(DType::Bool, shape, Arc::new(bytes))
    }

    /// Puts runs of elements one after another: ranges of tensors that all are of type `dtype`.
    ///
    /// # Errors
    /// `DType` where one is of another type, `Shape` where the runs do not fill the shape or reach
    /// beyond a tensor's end.
    pub fn from_runs<'a>(
        dtype: DType,
        shape: &[usize],
        runs: impl Iterator<Item = (&'a Tensor, Range<usize>)>,
    ) -> Result<Tensor> {
        let (mut bytes, mut texts) = (AlignedBytes::default(), Vec::new());
        match dtype {
            DType::String => texts = vec_with_room(element_count(shape)?)?,
            _ => bytes = AlignedBytes::with_capacity(byte_count(dtype, shape)?)?,
        }
        let want = element_count(shape)?;
        for (tensor, run) in runs {
            if tensor.dtype != dtype {
                return Err(
                    Error::new(ErrorCode::DType, "a tensor has another element type")
                        .with_expected(dtype)
                        .with_got(tensor.dtype),
                );
            }
            let so_far = texts.len() + bytes.len() / dtype.size();
            if run.start > run.end || run.end > tensor.len() || run.len() > want - so_far {
                return Err(beyond());
            }
            match &tensor.data {
                Data::Texts(all) => texts.extend_from_slice(&all[run]),
                Data::Bytes { .. } => {
                    let run = run.start * dtype.size()..run.end * dtype.size();
                    bytes.extend_from_slice(&tensor.read()?[run]);
                }
            }
        }
        match dtype {
            DType::String => Tensor::from_texts(shape, texts),
            _ => Tensor::from_bytes(dtype, shape, Arc::new(bytes)),
        }
    }
}
