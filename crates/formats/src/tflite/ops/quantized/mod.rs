//! Operators on quantised data, in integers. The arithmetic is that of TFLite's reference kernels,
//! down to which products of scales are rounded to `float32`, so that results are the same bytes.

pub mod binary;
pub mod lstm;
pub mod pool;
pub mod product;
pub mod reduce;
pub mod table;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::fixed::Factor;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Requantize};
use kilim_core::tensor::Tensor;

use super::super::import::{Import, Op};
use super::super::schema::TensorInfo;

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}

/// What the bytes of a tensor stand for: `scale * (byte - zero_point)`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quanta {
    scale: f32,
    zero_point: i32,
    dtype: DType,
}

impl Quanta {
    /// The parameters of a tensor of bytes with a single scale.
    fn of(info: &TensorInfo) -> Result<Quanta> {
        let dtype = info.dtype()?;
        if !matches!(dtype, DType::I8 | DType::U8) {
            return Err(unsupported(format!("quantised {dtype} tensors")));
        }
        Quanta::of_any(info)
    }

    /// The parameters of a tensor of any integer type with a single scale.
    fn of_any(info: &TensorInfo) -> Result<Quanta> {
        let dtype = info.dtype()?;
        let q = info
            .quantization
            .as_ref()
            .ok_or_else(|| invalid("a quantised tensor has no scale"))?;
        let [scale] = q.scale[..] else {
            return Err(unsupported("data with a scale for each channel"));
        };
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(invalid(format!("the scale of a tensor is {scale}")));
        }
        let zero_point = q.zero_point.first().copied().unwrap_or(0);
        let (low, high) = limits(dtype)?;
        let zero_point = i32::try_from(zero_point)
            .ok()
            .filter(|z| (low..=high).contains(z))
            .ok_or_else(|| invalid(format!("the zero point of a tensor is {zero_point}")))?;
        Ok(Quanta {
            scale,
            zero_point,
            dtype,
        })
    }

    fn input(imp: &Import, op: &Op, i: usize) -> Result<Quanta> {
        Quanta::of(imp.info(op, i)?)
    }

    fn output(imp: &Import, op: &Op) -> Result<Quanta> {
        Quanta::of(imp.output_info(op, 0)?)
    }

    /// The byte closest to `real`, not clamped.
    fn quantized(&self, real: f32) -> i32 {
        self.zero_point
            .saturating_add((real / self.scale).round() as i32)
    }

    /// The bytes that an activation leaves.
    fn range(&self, activation: Activation) -> Result<[i32; 2]> {
        let (low, high) = limits(self.dtype)?;
        Ok(match activation {
            Activation::None => [low, high],
            Activation::Relu => [low.max(self.quantized(0.0)), high],
            Activation::Clip { min, max } => {
                [low.max(self.quantized(min)), high.min(self.quantized(max))]
            }
            other => {
                return Err(unsupported(format!("{other:?} fused into quantised data")));
            }
        })
    }

    /// Results of this kind from sums.
    fn requantize(&self, factors: Vec<Factor>, activation: Activation) -> Result<Requantize> {
        Ok(Requantize {
            factors,
            zero_point: self.zero_point,
            range: self.range(activation)?,
            output: self.dtype,
        })
    }

    /// The zero point as a scalar.
    fn zero(&self) -> Result<Tensor> {
        // The low byte is the same for both signs.
        Tensor::from_raw(self.dtype, &[], &[self.zero_point as u8])
    }

    /// The zero point as a constant; `None` where it is zero.
    fn zero_value(&self, imp: &mut Import) -> Result<Option<ValueId>> {
        if self.zero_point == 0 {
            return Ok(None);
        }
        let zero = self.zero()?;
        Ok(Some(imp.node_constant("zero_point", zero)))
    }
}

/// The smallest and the largest number of a quantised type.
fn limits(dtype: DType) -> Result<(i32, i32)> {
    Ok(match dtype {
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (u8::MIN.into(), u8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN, i32::MAX),
        other => return Err(unsupported(format!("quantised {other} tensors"))),
    })
}

/// Scale and zero point of an operator that only compares or copies must be those of its output.
fn same(a: &Quanta, b: &Quanta) -> Result<()> {
    if a == b {
        return Ok(());
    }
    Err(unsupported("inputs and outputs of different scales"))
}
