//! Element types.

use std::fmt;

/// The element type of a tensor. Names and meaning follow ONNX `TensorProto.DataType`.
///
/// In memory an element takes one, two, four, eight or sixteen bytes, little-endian. Types of less
/// than a byte take a byte each: signed integers with their sign extended, the others with zeros above.
/// In files they are packed, the first element in the lowest bits ([`crate::narrow`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    F32,
    F64,
    F16,
    BF16,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    /// One byte an element, 0 or 1.
    Bool,
    /// Sign, 4 bits of exponent, 3 of mantissa; no infinities.
    F8E4M3FN,
    /// Sign, 4 bits of exponent, 3 of mantissa, with a bias of 8; no infinities, no negative zero.
    F8E4M3FNUZ,
    /// Sign, 5 bits of exponent, 2 of mantissa; infinities as in IEEE 754.
    F8E5M2,
    /// Sign, 5 bits of exponent, 2 of mantissa, with a bias of 16; no infinities, no negative zero.
    F8E5M2FNUZ,
    /// Powers of two from 2^-127 to 2^127, and NaN.
    F8E8M0,
    /// Sign, 2 bits of exponent, 1 of mantissa; finite numbers only.
    F4E2M1,
    /// Sign, 2 bits of exponent, 3 of mantissa; finite numbers only.
    F6E2M3,
    /// Sign, 3 bits of exponent, 2 of mantissa; finite numbers only.
    F6E3M2,
    I4,
    U4,
    I2,
    U2,
    /// Two `float32`: the real part, then the imaginary one.
    C64,
    /// Two `float64`: the real part, then the imaginary one.
    C128,
    /// UTF-8 text. On the host a tensor holds the texts themselves ([`crate::Tensor::texts`]); in a
    /// backend's memory an element is a number of four bytes that the backend gives to a text.
    String,
}

impl DType {
    /// Every element type there is.
    pub const ALL: [DType; 28] = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::Bool,
        DType::F8E4M3FN,
        DType::F8E4M3FNUZ,
        DType::F8E5M2,
        DType::F8E5M2FNUZ,
        DType::F8E8M0,
        DType::F4E2M1,
        DType::F6E2M3,
        DType::F6E3M2,
        DType::I4,
        DType::U4,
        DType::I2,
        DType::U2,
        DType::C64,
        DType::C128,
        DType::String,
    ];

    /// Bytes of one element in memory.
    pub const fn size(self) -> usize {
        match self {
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 2,
            DType::F32 | DType::I32 | DType::U32 | DType::String => 4,
            DType::F64 | DType::I64 | DType::U64 | DType::C64 => 8,
            DType::C128 => 16,
            _ => 1,
        }
    }

    /// Bits of one element in a file: less than a byte for some.
    pub const fn bits(self) -> usize {
        match self {
            DType::F6E2M3 | DType::F6E3M2 => 6,
            DType::F4E2M1 | DType::I4 | DType::U4 => 4,
            DType::I2 | DType::U2 => 2,
            _ => 8 * self.size(),
        }
    }

    /// True for the floating-point types that operators compute with, of 16 bits and more.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
    }

    /// True for the signed and unsigned integers that operators compute with, of 8 bits and more.
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer() || matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// True for the signed ones among them.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// True for the types of at most 8 bits that are only moved, converted, quantised to and
    /// dequantised from: float8, float6, float4 and integers of 2 and 4 bits.
    pub const fn is_narrow(self) -> bool {
        self.is_narrow_float() || self.is_narrow_integer()
    }

    /// True for float8, float6 and float4.
    pub const fn is_narrow_float(self) -> bool {
        matches!(
            self,
            DType::F8E4M3FN
                | DType::F8E4M3FNUZ
                | DType::F8E5M2
                | DType::F8E5M2FNUZ
                | DType::F8E8M0
                | DType::F4E2M1
                | DType::F6E2M3
                | DType::F6E3M2
        )
    }

    /// True for integers of 2 and 4 bits.
    pub const fn is_narrow_integer(self) -> bool {
        matches!(self, DType::I4 | DType::U4 | DType::I2 | DType::U2)
    }

    /// True for complex numbers, which are moved, and summed with real weights.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// The type of a complex number's two parts; any other type is its own.
    pub const fn part(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// True for the types that operators do not compute with: narrow ones, complex numbers, strings.
    pub const fn is_only_stored(self) -> bool {
        self.is_narrow() || self.is_complex() || matches!(self, DType::String)
    }

    /// The name that numpy, ONNX and the JavaScript API use, `float32` for instance.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::Bool => "bool",
            DType::F8E4M3FN => "float8e4m3fn",
            DType::F8E4M3FNUZ => "float8e4m3fnuz",
            DType::F8E5M2 => "float8e5m2",
            DType::F8E5M2FNUZ => "float8e5m2fnuz",
            DType::F8E8M0 => "float8e8m0",
            DType::F4E2M1 => "float4e2m1",
            DType::F6E2M3 => "float6e2m3",
            DType::F6E3M2 => "float6e3m2",
            DType::I4 => "int4",
            DType::U4 => "uint4",
            DType::I2 => "int2",
            DType::U2 => "uint2",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
            DType::String => "string",
        }
    }

    /// The inverse of [`DType::name`].
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
