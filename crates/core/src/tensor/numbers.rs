//! The elements of a tensor as numbers of one type, whatever their own.

use super::Tensor;
use super::read::cast_slice;
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::narrow;

impl Tensor {
    /// The elements as `i64`, for any integer or boolean type (shapes, axes, indices, weights).
    pub fn to_i64s(&self) -> Result<Vec<i64>> {
        Ok(match self.dtype {
            DType::I64 => self.as_slice::<i64>()?.to_vec(),
            DType::I32 => self.as_slice::<i32>()?.iter().map(|&v| v.into()).collect(),
            DType::I16 => self.as_slice::<i16>()?.iter().map(|&v| v.into()).collect(),
            DType::I8 => self.as_slice::<i8>()?.iter().map(|&v| v.into()).collect(),
            dtype if dtype.is_narrow_integer() => {
                let bytes = self.bytes().iter();
                bytes.map(|&b| narrow::decode(dtype, b) as i64).collect()
            }
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

    /// The elements as `f64`, for any element type but strings; of complex numbers, real and
    /// imaginary parts in turn.
    pub fn to_f64s(&self) -> Result<Vec<f64>> {
        Ok(match self.dtype {
            DType::F32 => self.as_slice::<f32>()?.iter().map(|&v| v.into()).collect(),
            DType::F64 => self.as_slice::<f64>()?.to_vec(),
            DType::C64 => cast_slice::<f32>(self.bytes())?
                .iter()
                .map(|&v| v.into())
                .collect(),
            DType::C128 => cast_slice::<f64>(self.bytes())?.to_vec(),
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
            dtype if dtype.is_narrow_float() => {
                let bytes = self.bytes().iter();
                bytes.map(|&b| narrow::decode(dtype, b).into()).collect()
            }
            _ => self.to_i64s()?.into_iter().map(|v| v as f64).collect(),
        })
    }
}
