//! The elements of a tensor as numbers of one type, whatever their own.

use std::ops::Range;

use half::{bf16, f16};

use super::Tensor;
use super::read::{beyond, cast_slice};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result, unsupported};
use crate::fallible::{reserve, vec_with_room};
use crate::narrow;

impl Tensor {
    /// The elements as `i64`, for any integer or boolean type (shapes, axes, indices, weights).
    ///
    /// # Errors
    /// `DType` for other types, `InvalidValue` where one does not fit, `Limit` where memory is short.
    pub fn to_i64s(&self) -> Result<Vec<i64>> {
        let mut numbers = vec_with_room(self.len())?;
        self.append_i64s(0..self.len(), &mut numbers)?;
        Ok(numbers)
    }

    /// The elements as `f64`, for any element type but strings; of complex numbers, real and
    /// imaginary parts in turn.
    ///
    /// # Errors
    /// `DType` for strings, `InvalidValue` where one does not fit, `Limit` where memory is short.
    pub fn to_f64s(&self) -> Result<Vec<f64>> {
        let mut numbers = Vec::new();
        self.append_f64s(0..self.len(), &mut numbers)?;
        Ok(numbers)
    }

    /// The elements in another floating-point type, rounded once.
    ///
    /// # Errors
    /// Those of [`Tensor::to_f64s`], and `Unsupported` where `to` is no type that nodes compute in.
    pub fn in_precision(&self, to: DType) -> Result<Tensor> {
        let shape = self.shape();
        if let (Ok(single), DType::F16) = (self.as_slice::<f32>(), to) {
            let rounded: Vec<f16> = single.iter().map(|&x| f16::from_f32(x)).collect();
            return Tensor::from_slice(shape, &rounded);
        }
        let numbers = self.to_f64s()?.into_iter();
        match to {
            DType::F16 => {
                Tensor::from_slice(shape, &numbers.map(f16::from_f64).collect::<Vec<_>>())
            }
            DType::BF16 => {
                Tensor::from_slice(shape, &numbers.map(bf16::from_f64).collect::<Vec<_>>())
            }
            DType::F32 => Tensor::from_slice(shape, &numbers.map(|x| x as f32).collect::<Vec<_>>()),
            DType::F64 => Tensor::from_slice(shape, &numbers.collect::<Vec<_>>()),
            _ => Err(unsupported(format!("nodes do not compute in {to}"))),
        }
    }

    /// Appends some elements as `i64`; see [`Tensor::to_i64s`].
    ///
    /// # Errors
    /// Those of [`Tensor::to_i64s`], and `Shape` where the tensor ends before them.
    pub fn append_i64s(&self, elements: Range<usize>, to: &mut Vec<i64>) -> Result<()> {
        let bytes = self.some_bytes(&elements)?;
        reserve(to, elements.len())?;
        macro_rules! each {
            ($t:ty) => {
                to.extend(cast_slice::<$t>(bytes)?.iter().map(|&v| i64::from(v)))
            };
        }
        match self.dtype {
            DType::I64 => each!(i64),
            DType::I32 => each!(i32),
            DType::I16 => each!(i16),
            DType::I8 => each!(i8),
            DType::U8 | DType::Bool => each!(u8),
            DType::U16 => each!(u16),
            DType::U32 => each!(u32),
            DType::U64 => {
                for &v in cast_slice::<u64>(bytes)? {
                    to.push(i64::try_from(v).map_err(|_| {
                        Error::new(ErrorCode::InvalidValue, "an index does not fit in int64")
                    })?);
                }
            }
            dtype if dtype.is_narrow_integer() => {
                to.extend(bytes.iter().map(|&b| narrow::decode(dtype, b) as i64));
            }
            _ => {
                return Err(Error::new(ErrorCode::DType, "an integer tensor is needed")
                    .with_got(self.dtype));
            }
        }
        Ok(())
    }

    /// Appends some elements as `f64`; see [`Tensor::to_f64s`].
    ///
    /// # Errors
    /// Those of [`Tensor::to_f64s`], and `Shape` where the tensor ends before them.
    pub fn append_f64s(&self, elements: Range<usize>, to: &mut Vec<f64>) -> Result<()> {
        let bytes = self.some_bytes(&elements)?;
        reserve(
            to,
            elements.len() * (1 + usize::from(self.dtype.is_complex())),
        )?;
        match self.dtype {
            DType::F32 | DType::C64 => {
                to.extend(cast_slice::<f32>(bytes)?.iter().map(|&v| f64::from(v)));
            }
            DType::F64 | DType::C128 => to.extend_from_slice(cast_slice(bytes)?),
            DType::F16 => to.extend(cast_slice::<half::f16>(bytes)?.iter().map(|v| v.to_f64())),
            DType::BF16 => to.extend(cast_slice::<half::bf16>(bytes)?.iter().map(|v| v.to_f64())),
            DType::U64 => to.extend(cast_slice::<u64>(bytes)?.iter().map(|&v| v as f64)),
            dtype if dtype.is_narrow_float() => {
                to.extend(bytes.iter().map(|&b| f64::from(narrow::decode(dtype, b))));
            }
            _ => {
                let mut whole = Vec::new();
                self.append_i64s(elements, &mut whole)?;
                to.extend(whole.into_iter().map(|v| v as f64));
            }
        }
        Ok(())
    }

    /// The bytes of some elements; none of strings.
    fn some_bytes(&self, elements: &Range<usize>) -> Result<&[u8]> {
        let size = self.dtype.size();
        let bytes = self.read()?;
        match self.dtype {
            DType::String => Ok(bytes),
            _ if elements.start > elements.end || elements.end > self.len() => Err(beyond()),
            _ => Ok(&bytes[elements.start * size..elements.end * size]),
        }
    }
}
