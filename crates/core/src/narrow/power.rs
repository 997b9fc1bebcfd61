//! Powers of two that are stored as their exponents.

use super::Overflow;

/// How numbers are rounded to powers of two ([`DType::F8E8M0`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PowerRounding {
    Up,
    Down,
    /// Rounds to the nearest, ties up.
    Nearest,
}

/// The power of two that the bits of a [`DType::F8E8M0`] stand for; 255 is NaN.
pub fn decode_power(bits: u8) -> f32 {
    match bits {
        255 => f32::NAN,
        // 2^-127 is a subnormal number.
        0 => f32::from_bits(1 << 22),
        exponent => f32::from_bits(u32::from(exponent) << 23),
    }
}

/// The bits of a power of two close to `value`. Of a negative number the sign is lost.
pub fn encode_power(value: f64, overflow: Overflow, rounding: PowerRounding) -> u8 {
    const NAN: u8 = 255;
    let size = value.abs();
    let beyond = |limit| match overflow {
        Overflow::Saturate => limit,
        Overflow::Special => NAN,
    };
    if size.is_nan() {
        return NAN;
    }
    let lowest = f64::from(decode_power(0));
    if size < lowest {
        return beyond(0);
    }
    let bits = size.to_bits();
    let exponent = (bits >> 52) as i64 - 1023 + 127;
    let fraction = bits & ((1 << 52) - 1);
    let up = match rounding {
        PowerRounding::Up => fraction > 0,
        PowerRounding::Down => false,
        PowerRounding::Nearest => fraction >= 1 << 51,
    };
    match exponent + i64::from(up) {
        power @ 0..=254 => power as u8,
        _ => beyond(254),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two() {
        use Overflow::{Saturate, Special};
        use PowerRounding::{Down, Nearest, Up};
        for bits in 0..=254 {
            let power = f64::from(decode_power(bits));
            assert_eq!(power, 2f64.powi(i32::from(bits) - 127));
            for rounding in [Up, Down, Nearest] {
                assert_eq!(encode_power(power, Special, rounding), bits);
            }
        }
        assert!(decode_power(255).is_nan());
        let of = |value| [Up, Down, Nearest].map(|r| encode_power(value, Saturate, r));
        assert_eq!(of(3.0), [129, 128, 129]);
        assert_eq!(of(2.9), [129, 128, 128]);
        assert_eq!(of(f64::INFINITY), [254; 3]);
        assert_eq!(of(0.0), [0; 3]);
        for value in [0.0, f64::INFINITY, f64::NAN, 1e39] {
            assert_eq!(encode_power(value, Special, Nearest), 255);
        }
    }
}
