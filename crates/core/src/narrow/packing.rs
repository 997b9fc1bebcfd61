//! Numbers of less than a byte, packed.

use crate::error::{Error, ErrorCode, Result, shape_error};
use crate::fallible::{collect, vec_of};

/// The bytes that `count` numbers of `bits` each take when they are packed; `Limit` where that does
/// not fit.
pub fn packed_bytes(bits: usize, count: usize) -> Result<usize> {
    let all = count.checked_mul(bits).ok_or_else(|| {
        Error::new(
            ErrorCode::Limit,
            format!("{count} packed numbers are too many"),
        )
    })?;
    Ok(all.div_ceil(8))
}

/// `count` numbers of `bits` each, less than 8, that stand one after the other in bytes, the lowest
/// bits first.
///
/// # Errors
/// `Shape` where there are more or fewer bytes than they take, `Limit` where memory is short.
pub fn unpack(packed: &[u8], bits: usize, count: usize) -> Result<Vec<u8>> {
    let wanted = packed_bytes(bits, count)?;
    if packed.len() != wanted {
        return Err(shape_error("packed data has the wrong size")
            .with_expected(format!("{wanted} bytes"))
            .with_got(format!("{} bytes", packed.len())));
    }
    let mask = u8::MAX >> (8 - bits);
    let number = |i: usize| {
        let (byte, shift) = (i * bits / 8, i * bits % 8);
        let low = packed[byte] >> shift;
        match shift + bits {
            ..=8 => low & mask,
            _ => (low | packed[byte + 1] << (8 - shift)) & mask,
        }
    };
    collect((0..count).map(number))
}

/// The inverse of [`unpack`]; what is above the lowest `bits` of a number is cut off.
///
/// # Errors
/// `Limit` where memory is short.
pub fn pack(numbers: &[u8], bits: usize) -> Result<Vec<u8>> {
    let mask = u8::MAX >> (8 - bits);
    let mut packed = vec_of(0, packed_bytes(bits, numbers.len())?)?;
    for (i, &n) in numbers.iter().enumerate() {
        let (byte, shift) = (i * bits / 8, i * bits % 8);
        packed[byte] |= (n & mask) << shift;
        if shift + bits > 8 {
            packed[byte + 1] |= (n & mask) >> (8 - shift);
        }
    }
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::super::sign_extended;
    use super::*;

    #[test]
    fn packing_begins_with_the_lowest_bits() {
        assert_eq!(unpack(&[0x21, 0x43, 0x05], 4, 5).unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(unpack(&[0b11_10_01_00], 2, 3).unwrap(), [0, 1, 2]);
        assert_eq!(pack(&[1, 2, 3, 4, 5], 4).unwrap(), [0x21, 0x43, 0x05]);
        assert_eq!(pack(&[0xff, 1, 0xfe], 2).unwrap(), [0b10_01_11]);
        // The example of onnx.proto: four numbers of six bits in three bytes.
        let x = [0x15, 0x2a, 0x3f, 0x01];
        let packed = [
            0x15 | (0x2a & 3) << 6,
            0x2a >> 2 | 0x0f << 4,
            0x3f >> 4 | 1 << 2,
        ];
        assert_eq!(pack(&x, 6).unwrap(), packed);
        assert_eq!(unpack(&packed, 6, 4).unwrap(), x);
        assert_eq!(unpack(&packed[..2], 6, 2).unwrap(), [0x15, 0x2a]);
        assert!(unpack(&[0], 4, 3).is_err());
        assert!(unpack(&packed, 6, 3).is_ok() && unpack(&packed, 6, 2).is_err());
        assert!(unpack(&[], 6, usize::MAX / 2).is_err());
        assert_eq!(sign_extended(0x0f, 4), -1);
        assert_eq!(sign_extended(0b10, 2), -2);
    }
}
