//! Numbers of at most 8 bits: what their bits mean, how other numbers are rounded to them, and how
//! those of less than a byte are packed.
//!
//! The float8 formats are those of the ONNX documentation ("Float stored in 8 bits"), float4, float6
//! and float8e8m0 those of the OCP Microscaling Formats (MX) v1.0.

mod minifloat;
mod packing;
mod power;

use crate::dtype::DType;

pub use minifloat::{Minifloat, Overflow};
pub use packing::{pack, packed_bytes, unpack};
pub use power::{PowerRounding, decode_power, encode_power};

/// How numbers are converted to types of 8 bits and less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Narrowing {
    pub overflow: Overflow,
    /// Only for [`DType::F8E8M0`].
    pub rounding: PowerRounding,
}

impl Default for Narrowing {
    /// Saturates, and rounds up to powers of two.
    fn default() -> Self {
        Narrowing {
            overflow: Overflow::Saturate,
            rounding: PowerRounding::Up,
        }
    }
}

/// The value of a narrow element, whatever its type.
pub fn decode(dtype: DType, bits: u8) -> f32 {
    match dtype {
        DType::F8E8M0 => decode_power(bits),
        DType::I4 | DType::I2 => sign_extended(bits, dtype.bits()).into(),
        _ => match Minifloat::of(dtype) {
            Some(format) => format.decode(bits),
            None => (bits & (u8::MAX >> (8 - dtype.bits()))).into(),
        },
    }
}

/// The bits of the number of a narrow floating-point type that `value` becomes.
pub fn encode(dtype: DType, value: f64, narrowing: Narrowing) -> u8 {
    match Minifloat::of(dtype) {
        Some(format) => format.encode(value, narrowing.overflow),
        None => encode_power(value, narrowing.overflow, narrowing.rounding),
    }
}

/// The lowest `bits` of a byte as a signed number.
pub const fn sign_extended(byte: u8, bits: usize) -> i8 {
    let above = 8 - bits;
    ((byte << above) as i8) >> above
}

/// The element of a narrow integer type that `value` wraps to.
pub fn wrap(dtype: DType, value: i64) -> u8 {
    let low = value as u8;
    match dtype {
        DType::I4 | DType::I2 => sign_extended(low, dtype.bits()) as u8,
        _ => low & (u8::MAX >> (8 - dtype.bits())),
    }
}
