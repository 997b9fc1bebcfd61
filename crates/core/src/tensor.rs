//! Tensors in host memory.

use std::fmt;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};

/// One cache line; the unit of [`AlignedBytes`], so that SIMD kernels may count on alignment.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes on the heap, aligned to 64.
#[derive(Clone, Default)]
pub struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes; `Limit` where the machine has no such memory.
    pub fn zeroed(len: usize) -> Result<Self> {
        // Fresh pages are zero already; the allocator knows which ones are.
        let lines = bytemuck::allocation::try_zeroed_vec(len.div_ceil(64)).map_err(|()| {
            Error::new(
                ErrorCode::Limit,
                format!("cannot allocate {len} bytes of memory"),
            )
        })?;
        Ok(AlignedBytes { lines, len })
    }

    pub fn copy_of(bytes: &[u8]) -> Result<Self> {
        let mut copy = Self::zeroed(bytes.len())?;
        copy.as_mut_slice().copy_from_slice(bytes);
        Ok(copy)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

/// An element type of Rust that a tensor can hold. `bool` tensors are read as `u8`.
pub trait Element: Pod + Send + Sync + PartialEq + fmt::Debug {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => { $(impl Element for $t { const DTYPE: DType = DType::$d; })* };
}
elements!(f32 => F32, f64 => F64, half::f16 => F16, half::bf16 => BF16, i8 => I8, i16 => I16, i32 => I32,
    i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64);

/// A dense row-major tensor in host memory. Cloning shares the bytes.
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Arc<AlignedBytes>,
    offset: usize,
    len: usize,
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

impl Tensor {
    /// All zeros.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let len = byte_count(dtype, shape)?;
        Tensor::from_bytes(dtype, shape, Arc::new(AlignedBytes::zeroed(len)?))
    }

    /// Takes `bytes` whole; `Shape` where their number does not fit.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Arc<AlignedBytes>) -> Result<Tensor> {
        let len = bytes.len();
        Tensor::view(dtype, shape, bytes, 0, len)
    }

    /// A part of shared bytes, `len` from `offset` on. Copies only where the element type's
    /// alignment asks for it.
    pub fn view(
        dtype: DType,
        shape: &[usize],
        bytes: Arc<AlignedBytes>,
        offset: usize,
        len: usize,
    ) -> Result<Tensor> {
        let want = byte_count(dtype, shape)?;
        let end = offset.checked_add(len);
        if want != len || end.is_none_or(|e| e > bytes.len()) {
            return Err(Error::new(
                ErrorCode::Shape,
                format!("the data of a {dtype} tensor of shape {shape:?} has the wrong size"),
            )
            .with_expected(format!("{want} bytes"))
            .with_got(format!("{len} bytes")));
        }
        if !offset.is_multiple_of(dtype.size()) {
            let copy = AlignedBytes::copy_of(&bytes.as_slice()[offset..offset + len])?;
            return Tensor::from_bytes(dtype, shape, Arc::new(copy));
        }
        Ok(Tensor {
            dtype,
            shape: shape.to_vec(),
            bytes,
            offset,
            len,
        })
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
        self.len / self.dtype.size()
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes, row-major, little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes.as_slice()[self.offset..self.offset + self.len]
    }

    /// The elements; `DType` where they are of another type (`Bool` is read as `u8`).
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        let same = self.dtype == T::DTYPE || (self.dtype == DType::Bool && T::DTYPE == DType::U8);
        if !same {
            return Err(
                Error::new(ErrorCode::DType, "a tensor has another element type")
                    .with_expected(T::DTYPE)
                    .with_got(self.dtype),
            );
        }
        bytemuck::try_cast_slice(self.bytes())
            .map_err(|e| Error::new(ErrorCode::DType, format!("a tensor's bytes: {e}")))
    }

    /// The elements as `i64`, for any integer or boolean type (shapes, axes, indices).
    pub fn to_i64s(&self) -> Result<Vec<i64>> {
        Ok(match self.dtype {
            DType::I64 => self.as_slice::<i64>()?.to_vec(),
            DType::I32 => self.as_slice::<i32>()?.iter().map(|&v| v.into()).collect(),
            DType::I16 => self.as_slice::<i16>()?.iter().map(|&v| v.into()).collect(),
            DType::I8 => self.as_slice::<i8>()?.iter().map(|&v| v.into()).collect(),
            DType::U8 | DType::Bool => self.as_slice::<u8>()?.iter().map(|&v| v.into()).collect(),
            DType::U16 => self.as_slice::<u16>()?.iter().map(|&v| v.into()).collect(),
            DType::U32 => self.as_slice::<u32>()?.iter().map(|&v| v.into()).collect(),
            DType::U64 => self
                .as_slice::<u64>()?
                .iter()
                .map(|&v| i64::try_from(v))
                .collect::<std::result::Result<_, _>>()
                .map_err(|_| {
                    Error::new(ErrorCode::InvalidValue, "an index does not fit in int64")
                })?,
            _ => {
                return Err(Error::new(ErrorCode::DType, "an integer tensor is needed")
                    .with_got(self.dtype));
            }
        })
    }

    /// The elements as `f64`, for any element type.
    pub fn to_f64s(&self) -> Result<Vec<f64>> {
        Ok(match self.dtype {
            DType::F32 => self.as_slice::<f32>()?.iter().map(|&v| v.into()).collect(),
            DType::F64 => self.as_slice::<f64>()?.to_vec(),
            DType::F16 => self
                .as_slice::<half::f16>()?
                .iter()
                .map(|v| v.to_f64())
                .collect(),
            DType::BF16 => self
                .as_slice::<half::bf16>()?
                .iter()
                .map(|v| v.to_f64())
                .collect(),
            DType::U64 => self.as_slice::<u64>()?.iter().map(|&v| v as f64).collect(),
            _ => self.to_i64s()?.into_iter().map(|v| v as f64).collect(),
        })
    }

    /// The same bytes under another shape of as many elements.
    pub fn reshaped(&self, shape: &[usize]) -> Result<Tensor> {
        Tensor::view(self.dtype, shape, self.bytes.clone(), self.offset, self.len)
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.bytes() == other.bytes()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)?;
        match self.to_f64s() {
            Ok(v) if v.len() <= 8 => write!(f, " {v:?}"),
            _ => Ok(()),
        }
    }
}
