//! Tensors in host memory.

mod bytes;
mod cut;
mod later;
mod make;
mod numbers;
mod read;
#[cfg(test)]
mod tests;
mod widened;

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;

use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::interrupt::Meter;

pub use bytes::AlignedBytes;
pub(crate) use cut::cut;
pub(crate) use read::cast_slice_mut;

use later::{Buffer, Later};

/// An element type of Rust that a tensor can hold. `bool` tensors are read as `u8`.
pub trait Element: Pod + Send + Sync + PartialEq + fmt::Debug {
    /// Kilim's name for the type.
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
    /// The elements of a [`DType::String`].
    Texts(Arc<Vec<Arc<str>>>),
}

/// The elements of a tensor: the product of its dimensions. Those of an empty tensor must not be too large either, so
/// that the product of any of its dimensions fits.
///
/// # Errors
/// `Limit` where there is no memory of so many bytes.
pub fn element_count(shape: &[usize]) -> Result<usize> {
    elements_of(1, shape).ok_or_else(|| too_large("a tensor", shape))
}

/// The bytes of a dense tensor.
///
/// # Errors
/// `Limit` where there is no memory of so many bytes.
pub fn byte_count(dtype: DType, shape: &[usize]) -> Result<usize> {
    let elements = elements_of(dtype.size(), shape);
    let elements = elements.ok_or_else(|| too_large(&format!("a tensor of {dtype}"), shape))?;
    Ok(elements * dtype.size())
}

/// The elements of `size` bytes, where memory of all of them can be addressed.
fn elements_of(size: usize, shape: &[usize]) -> Option<usize> {
    let mut dims = shape.iter();
    let bytes = dims.try_fold(size, |n, &d| n.checked_mul(d.max(1)))?;
    let empty = shape.contains(&0);
    let elements = if empty { 0 } else { bytes.checked_div(size)? };
    (bytes <= isize::MAX as usize).then_some(elements)
}

#[cold]
fn too_large(what: &str, shape: &[usize]) -> Error {
    Error::new(
        ErrorCode::Limit,
        format!("{what} of shape {shape:?} is too large"),
    )
}

impl Tensor {
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

    /// `len` bytes, a tensor of `uint8`, that `read` gives when they are needed, once for all clones and once more after
    /// each [`Tensor::unread`]. It fills bytes from the given one on.
    pub fn on_demand(
        len: usize,
        read: impl Fn(usize, &mut [u8]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Tensor> {
        let nothing = Tensor::from_raw(DType::U8, &[0], &[])?;
        nothing.later(DType::U8, &[len], move |_, from, to| read(from, to))
    }

    /// This tensor, read anew: what is computed for its reader is not kept for others.
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
            let buffer = Buffer::Later(Arc::new(Later::same(bytes)));
            return Tensor::part(dtype, shape, buffer, 0, len);
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

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions, the outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of dimensions.
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

    /// Whether there are no elements.
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

    /// This tensor, in a buffer of its own if the one it is in is more than twice as large or not there yet.
    /// It is copied in pieces of `meter`. What is read of a file is read once for all clones.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the work is to stop.
    pub fn detached(self, meter: &Meter) -> Result<Tensor> {
        match &self.data {
            Data::Bytes { buffer, len, .. } if buffer.len() / 2 > *len => self.copied(meter),
            Data::Bytes {
                buffer: Buffer::Later(later),
                ..
            } if later.holds_its_source() => self.copied(meter),
            _ => {
                self.read_on(meter)?;
                Ok(self)
            }
        }
    }

    /// The memory that the elements are in, where it is this tensor's alone and holds nothing else. Gives the tensor back
    /// where it is not.
    pub fn into_own_bytes(mut self) -> std::result::Result<AlignedBytes, Tensor> {
        self.data = match self.data {
            Data::Bytes {
                buffer: Buffer::Made(bytes),
                offset: 0,
                len,
            } if bytes.len() == len => match Arc::try_unwrap(bytes) {
                Ok(own) => return Ok(own),
                Err(bytes) => Data::Bytes {
                    buffer: Buffer::Made(bytes),
                    offset: 0,
                    len,
                },
            },
            other => other,
        };
        Err(self)
    }

    fn copied(&self, meter: &Meter) -> Result<Tensor> {
        let bytes = Arc::new(self.copy_bytes(meter)?);
        Tensor::from_bytes(self.dtype, &self.shape, bytes)
    }

    /// The elements under another shape with as many.
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

    /// The elements whose bytes are those of this tensor, in memory or later.
    ///
    /// # Errors
    /// `Shape` where such a tensor has another number of bytes, `DType` for strings.
    pub fn bytes_as(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        match &self.data {
            Data::Bytes {
                buffer,
                offset,
                len,
            } => Tensor::part(dtype, shape, buffer.clone(), *offset, *len),
            Data::Texts(_) => Err(Error::new(ErrorCode::DType, "strings have no bytes")),
        }
    }

    /// The bytes as elements of another type, of as many bits.
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
                    return Tensor::from_packed(dtype, &self.shape, &self.to_packed()?);
                }
                Tensor::part(dtype, &self.shape, buffer.clone(), *offset, *len)
            }
            _ => Err(Error::new(
                ErrorCode::DType,
                format!("a {} tensor has no bits of {dtype}", self.dtype),
            )),
        }
    }
}

impl Tensor {
    /// Whether as many bytes are the same; false where they cannot be computed.
    fn same_bytes(&self, other: &Tensor) -> bool {
        const PART: usize = 4096;
        let (mut a, mut b) = ([0; PART], [0; PART]);
        (0..self.byte_len()).step_by(PART).all(|first| {
            let len = PART.min(self.byte_len() - first);
            let (a, b) = (&mut a[..len], &mut b[..len]);
            self.copy_to(first, a).is_ok() && other.copy_to(first, b).is_ok() && a == b
        })
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.data, &other.data) {
            (Data::Texts(a), Data::Texts(b)) => a == b,
            _ => self.byte_len() == other.byte_len() && self.same_bytes(other),
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
