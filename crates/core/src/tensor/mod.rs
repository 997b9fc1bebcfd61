//! Tensors in host memory.

mod bytes;
mod later;
mod numbers;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::narrow;

pub use bytes::AlignedBytes;

use later::{Buffer, Later};

/// An element type of Rust that a tensor can hold. `bool` tensors are read as `u8`.
pub trait Element: Pod + Send + Sync + PartialEq + fmt::Debug {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => { $(impl Element for $t { const DTYPE: DType = DType::$d; })* };
}
elements!(f32 => F32, f64 => F64, half::f16 => F16, half::bf16 => BF16, i8 => I8, i16 => I16, i32 => I32,
    i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64);

/// A dense row-major tensor in host memory. Cloning shares the elements.
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    data: Data,
}

#[derive(Clone)]
enum Data {
    Bytes {
        buffer: Buffer,
        offset: usize,
        len: usize,
    },
    /// Of a [`DType::String`].
    Texts(Arc<[Arc<str>]>),
}

/// The number of elements of a shape; `Limit` where it does not fit.
pub fn element_count(shape: &[usize]) -> Result<usize> {
    shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .ok_or_else(|| {
            Error::new(
                ErrorCode::Limit,
                format!("a tensor of shape {shape:?} is too large"),
            )
        })
}

/// The bytes of a dense tensor; `Limit` where it does not fit.
pub fn byte_count(dtype: DType, shape: &[usize]) -> Result<usize> {
    element_count(shape)?
        .checked_mul(dtype.size())
        .ok_or_else(|| {
            Error::new(
                ErrorCode::Limit,
                format!("a {dtype} tensor of shape {shape:?} is too large"),
            )
        })
}

fn beyond() -> Error {
    Error::new(ErrorCode::Shape, "a run reaches beyond a tensor's end")
}

fn cast_slice<T: Element>(bytes: &[u8]) -> Result<&[T]> {
    bytemuck::try_cast_slice(bytes)
        .map_err(|e| Error::new(ErrorCode::DType, format!("a tensor's bytes: {e}")))
}

pub(crate) fn cast_slice_mut<T: Element>(bytes: &mut [u8]) -> Result<&mut [T]> {
    bytemuck::try_cast_slice_mut(bytes)
        .map_err(|e| Error::new(ErrorCode::DType, format!("a tensor's bytes: {e}")))
}

impl Tensor {
    /// All zeros; of strings, all empty.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Tensor> {
        if dtype == DType::String {
            let count = element_count(shape)?;
            let mut texts: Vec<Arc<str>> = Vec::new();
            let reserved = texts.try_reserve_exact(count);
            reserved
                .map_err(|_| bytes::out_of_memory(count.saturating_mul(size_of::<Arc<str>>())))?;
            texts.resize(count, Arc::from(""));
            return Tensor::from_texts(shape, texts);
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
            return Tensor::from_texts(shape, vec![text.clone(); element_count(shape)?]);
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

    /// What `compute` makes of this tensor when it is read, once for all clones and once more after each
    /// [`Tensor::unread`]: the weights of a network then need not all be in memory at once. It is given the tensor,
    /// and fills bytes of the new one from the given byte on, always whole elements. `DType` for strings.
    pub fn later(
        &self,
        dtype: DType,
        shape: &[usize],
        compute: impl Fn(&Tensor, usize, &mut [u8]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Tensor> {
        let len = byte_count(dtype, shape)?;
        let buffer = Buffer::Later(Arc::new(Later::new(len, self.clone(), compute)));
        Tensor::part(dtype, shape, buffer, 0, len)
    }

    /// The same tensor, read anew: what is computed for its reader is not kept for others.
    pub fn unread(&self) -> Tensor {
        let mut tensor = self.clone();
        if let Data::Bytes { buffer, .. } = &mut tensor.data {
            buffer.forget();
        }
        tensor
    }

    /// Takes `bytes` whole; `Shape` where their number does not fit.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Arc<AlignedBytes>) -> Result<Tensor> {
        let len = bytes.len();
        Tensor::view(dtype, shape, bytes, 0, len)
    }

    /// A part of shared bytes, `len` from `offset` on. Copies, when it is read, only where the element
    /// type's alignment asks for it. `DType` for strings, which are no bytes.
    pub fn view(
        dtype: DType,
        shape: &[usize],
        bytes: Arc<AlignedBytes>,
        offset: usize,
        len: usize,
    ) -> Result<Tensor> {
        Tensor::part(dtype, shape, Buffer::Made(bytes), offset, len)
    }

    fn part(
        dtype: DType,
        shape: &[usize],
        buffer: Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Tensor> {
        if dtype == DType::String {
            return Err(Error::new(
                ErrorCode::DType,
                "a string tensor is made of texts, not of bytes",
            ));
        }
        let want = byte_count(dtype, shape)?;
        let end = offset.checked_add(len);
        if want != len || end.is_none_or(|e| e > buffer.len()) {
            return Err(Error::new(
                ErrorCode::Shape,
                format!("the data of a {dtype} tensor of shape {shape:?} has the wrong size"),
            )
            .with_expected(format!("{want} bytes"))
            .with_got(format!("{len} bytes")));
        }
        if !offset.is_multiple_of(dtype.size()) {
            let bytes = Tensor::part(DType::U8, &[len], buffer, offset, len)?;
            return bytes.later(dtype, shape, Tensor::copy_to);
        }
        Ok(Tensor {
            dtype,
            shape: shape.to_vec(),
            data: Data::Bytes {
                buffer,
                offset,
                len,
            },
        })
    }

    /// A tensor of strings; `Shape` where their number does not fit.
    pub fn from_texts(shape: &[usize], texts: impl Into<Arc<[Arc<str>]>>) -> Result<Tensor> {
        let texts = texts.into();
        let want = element_count(shape)?;
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

    /// From the form that files have: types of less than a byte are packed, the first element in
    /// the lowest bits; all others are as in memory.
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
        let bytes: Vec<u8> = data.iter().map(|&b| u8::from(b)).collect();
        Tensor::from_raw(DType::Bool, shape, &bytes)
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match &self.data {
            Data::Bytes { len, .. } => len / self.dtype.size(),
            Data::Texts(texts) => texts.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of bytes; none of strings. Reads nothing.
    pub fn byte_len(&self) -> usize {
        match &self.data {
            Data::Bytes { len, .. } => *len,
            Data::Texts(_) => 0,
        }
    }

    /// The bytes, row-major, little-endian; none of strings. Where memory for what is computed late is short
    /// the program ends, as where a `Vec` grows; [`Tensor::read`] returns the error.
    pub fn bytes(&self) -> &[u8] {
        self.read()
            .unwrap_or_else(|_| Later::out_of_memory(self.byte_len()))
    }

    /// Like [`Tensor::bytes`]; `Limit` where memory for what is computed late is short.
    pub fn read(&self) -> Result<&[u8]> {
        match &self.data {
            Data::Bytes {
                buffer,
                offset,
                len,
            } => Ok(&buffer.read()?.as_slice()[*offset..offset + len]),
            Data::Texts(_) => Ok(&[]),
        }
    }

    /// Copies bytes from one on, or computes them there; none of strings.
    ///
    /// # Errors
    /// Of the computation.
    ///
    /// # Panics
    /// Where the tensor ends before `to`.
    pub fn copy_to(&self, from: usize, to: &mut [u8]) -> Result<()> {
        match &self.data {
            Data::Bytes { buffer, offset, .. } => buffer.copy_to(offset + from, to),
            Data::Texts(_) => Ok(()),
        }
    }

    /// A run of elements, where they are in memory or computed into `room`.
    ///
    /// # Errors
    /// `DType` where they are of another type, `Shape` where the tensor ends before the run, `Limit` where memory is
    /// short.
    pub fn run<'a, T: Element>(
        &'a self,
        elements: Range<usize>,
        room: &'a mut Vec<T>,
    ) -> Result<&'a [T]> {
        self.check_type::<T>()?;
        if elements.end > self.len() || elements.start > elements.end {
            return Err(beyond());
        }
        let Data::Bytes { buffer, .. } = &self.data else {
            return Ok(&[]);
        };
        if buffer.made().is_some() {
            return Ok(&self.as_slice()?[elements]);
        }
        let size = size_of::<T>();
        if let Some(more) = elements.len().checked_sub(room.len()) {
            room.try_reserve(more)
                .map_err(|_| bytes::out_of_memory(elements.len() * size))?;
            room.resize(elements.len(), T::zeroed());
        }
        let room = &mut room[..elements.len()];
        self.copy_to(elements.start * size, bytemuck::cast_slice_mut(room))?;
        Ok(room)
    }

    /// A copy of the bytes; `Limit` where memory is short.
    pub fn copy_bytes(&self) -> Result<AlignedBytes> {
        match &self.data {
            Data::Bytes {
                buffer,
                offset,
                len,
            } => buffer.copy(*offset..offset + len),
            Data::Texts(_) => Ok(AlignedBytes::default()),
        }
    }

    /// The inverse of [`Tensor::from_packed`].
    pub fn to_packed(&self) -> Cow<'_, [u8]> {
        match self.dtype.bits() {
            bits @ ..8 => Cow::Owned(narrow::pack(self.bytes(), bits)),
            _ => Cow::Borrowed(self.bytes()),
        }
    }

    /// The elements of a string tensor; `DType` for one of another type.
    pub fn texts(&self) -> Result<&[Arc<str>]> {
        match &self.data {
            Data::Texts(texts) => Ok(texts),
            Data::Bytes { .. } => {
                Err(Error::new(ErrorCode::DType, "a string tensor is needed").with_got(self.dtype))
            }
        }
    }

    /// Shows `each` buffer in memory that the elements are in or will be computed from, which other tensors may
    /// share: its address and its size.
    pub fn buffers(&self, each: &mut impl FnMut(usize, usize)) {
        match &self.data {
            Data::Bytes { buffer, .. } => buffer.each(each),
            Data::Texts(texts) => {
                let bytes = texts.iter().map(|t| t.len()).sum();
                each(texts.as_ptr() as usize, bytes);
            }
        }
    }

    /// The same tensor, in a buffer of its own if the one it is in is more than twice as large or not there yet.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn detached(self) -> Result<Tensor> {
        match &self.data {
            Data::Bytes { buffer, len, .. } if buffer.len() / 2 > *len => self.copied(),
            Data::Bytes {
                buffer: Buffer::Later(_),
                ..
            } => self.copied(),
            _ => Ok(self),
        }
    }

    fn copied(&self) -> Result<Tensor> {
        let bytes = Arc::new(self.copy_bytes()?);
        Tensor::from_bytes(self.dtype, &self.shape, bytes)
    }

    /// The elements; `DType` where they are of another type (`Bool` is read as `u8`).
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_type::<T>()?;
        cast_slice(self.read()?)
    }

    fn check_type<T: Element>(&self) -> Result<()> {
        let same = self.dtype == T::DTYPE || (self.dtype == DType::Bool && T::DTYPE == DType::U8);
        match same {
            true => Ok(()),
            false => Err(
                Error::new(ErrorCode::DType, "a tensor has another element type")
                    .with_expected(T::DTYPE)
                    .with_got(self.dtype),
            ),
        }
    }

    /// Nothing else reads the buffer, which is there.
    pub fn is_unshared(&mut self) -> bool {
        match &mut self.data {
            Data::Bytes { buffer, .. } => buffer.alone().is_some(),
            Data::Texts(_) => false,
        }
    }

    /// The elements, to be changed in place; copied first where others share the bytes. `DType`
    /// where they are of another type, `Limit` where memory for a copy is short.
    pub fn make_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_type::<T>()?;
        if !self.is_unshared() {
            *self = self.copied()?;
        }
        let Data::Bytes {
            buffer,
            offset,
            len,
        } = &mut self.data
        else {
            return Err(Error::new(ErrorCode::DType, "strings are no bytes"));
        };
        let bytes = buffer
            .alone()
            .ok_or_else(|| Error::new(ErrorCode::State, "a tensor's own copy is shared"))?;
        cast_slice_mut(&mut bytes.as_mut_slice()[*offset..*offset + *len])
    }

    /// The same elements under another shape of as many.
    pub fn reshaped(&self, shape: &[usize]) -> Result<Tensor> {
        match &self.data {
            Data::Bytes {
                buffer,
                offset,
                len,
            } => Tensor::part(self.dtype, shape, buffer.clone(), *offset, *len),
            Data::Texts(texts) => Tensor::from_texts(shape, texts.clone()),
        }
    }

    /// The same bytes as elements of another type, of as many bits.
    ///
    /// # Errors
    /// `DType` where an element of `dtype` has another number of bits, and for strings.
    pub fn reinterpreted(&self, dtype: DType) -> Result<Tensor> {
        match &self.data {
            Data::Bytes {
                buffer,
                offset,
                len,
            } if self.dtype.bits() == dtype.bits() => {
                if dtype.bits() < 8 {
                    return Tensor::from_packed(dtype, &self.shape, &self.to_packed());
                }
                Tensor::part(dtype, &self.shape, buffer.clone(), *offset, *len)
            }
            _ => Err(Error::new(
                ErrorCode::DType,
                format!("a {} tensor has no bits of {dtype}", self.dtype),
            )),
        }
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
        let count = element_count(shape)?;
        let (mut bytes, mut texts) = (Vec::new(), Vec::new());
        match dtype {
            DType::String => texts.reserve_exact(count),
            _ => bytes.reserve_exact(byte_count(dtype, shape)?),
        }
        for (tensor, run) in runs {
            if tensor.dtype != dtype {
                return Err(
                    Error::new(ErrorCode::DType, "a tensor has another element type")
                        .with_expected(dtype)
                        .with_got(tensor.dtype),
                );
            }
            match &tensor.data {
                Data::Texts(all) => texts.extend_from_slice(all.get(run).ok_or_else(beyond)?),
                Data::Bytes { .. } => {
                    let run = run.start * dtype.size()..run.end * dtype.size();
                    bytes.extend_from_slice(tensor.bytes().get(run).ok_or_else(beyond)?);
                }
            }
        }
        match dtype {
            DType::String => Tensor::from_texts(shape, texts),
            _ => Tensor::from_raw(dtype, shape, &bytes),
        }
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.data, &other.data) {
            (Data::Texts(a), Data::Texts(b)) => a == b,
            _ => self.bytes() == other.bytes(),
        };
        self.dtype == other.dtype && self.shape == other.shape && same
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)?;
        match (&self.data, self.to_f64s()) {
            (Data::Texts(texts), _) if texts.len() <= 8 => write!(f, " {texts:?}"),
            (_, Ok(v)) if v.len() <= 8 => write!(f, " {v:?}"),
            _ => Ok(()),
        }
    }
}
