//! Floating-point numbers of at most 8 bits.

use crate::dtype::DType;

/// How a floating-point number of up to 8 bits is made up: sign, exponent, mantissa.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minifloat {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    special: Special,
}

/// What a [`Minifloat`] has beside finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// The largest exponent stands for infinity and NaN, as in IEEE 754.
    Infinity,
    /// All bits but the sign stand for NaN.
    AllOnes,
    /// The sign alone stands for NaN; there is no negative zero.
    NegativeZero,
    None,
}

/// What becomes of a number that is too large for a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The largest finite number.
    Saturate,
    /// Infinity, or NaN where the type has none.
    Special,
}

impl Minifloat {
    /// `float8e4m3fn`: no infinity.
    pub const F8E4M3FN: Minifloat = Minifloat::new(4, 3, 7, Special::AllOnes);
    /// `float8e4m3fnuz`: no infinity and no negative zero.
    pub const F8E4M3FNUZ: Minifloat = Minifloat::new(4, 3, 8, Special::NegativeZero);
    /// `float8e5m2`: as IEEE 754 has it.
    pub const F8E5M2: Minifloat = Minifloat::new(5, 2, 15, Special::Infinity);
    /// `float8e5m2fnuz`: no infinity and no negative zero.
    pub const F8E5M2FNUZ: Minifloat = Minifloat::new(5, 2, 16, Special::NegativeZero);
    /// `float4e2m1`: finite numbers alone.
    pub const F4E2M1: Minifloat = Minifloat::new(2, 1, 1, Special::None);
    /// `float6e2m3`: finite numbers alone.
    pub const F6E2M3: Minifloat = Minifloat::new(2, 3, 1, Special::None);
    /// `float6e3m2`: finite numbers alone.
    pub const F6E3M2: Minifloat = Minifloat::new(3, 2, 3, Special::None);

    const fn new(exponent_bits: u32, mantissa_bits: u32, bias: i32, special: Special) -> Self {
        Minifloat {
            exponent_bits,
            mantissa_bits,
            bias,
            special,
        }
    }

    /// The format of an element type; `None` for those that are no minifloats.
    pub const fn of(dtype: DType) -> Option<Minifloat> {
        match dtype {
            DType::F8E4M3FN => Some(Minifloat::F8E4M3FN),
            DType::F8E4M3FNUZ => Some(Minifloat::F8E4M3FNUZ),
            DType::F8E5M2 => Some(Minifloat::F8E5M2),
            DType::F8E5M2FNUZ => Some(Minifloat::F8E5M2FNUZ),
            DType::F4E2M1 => Some(Minifloat::F4E2M1),
            DType::F6E2M3 => Some(Minifloat::F6E2M3),
            DType::F6E3M2 => Some(Minifloat::F6E3M2),
            _ => None,
        }
    }

    /// The bit of the sign; those below it are the magnitude.
    const fn sign(self) -> u8 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// The magnitude of the largest finite number.
    const fn largest(self) -> u8 {
        let all = self.sign() - 1;
        match self.special {
            Special::Infinity => all - (1 << self.mantissa_bits),
            Special::AllOnes => all - 1,
            Special::NegativeZero | Special::None => all,
        }
    }

    /// The number that `bits` stand for; every one of them is a `float32`.
    pub fn decode(self, bits: u8) -> f32 {
        let (sign, magnitude) = (bits & self.sign(), bits & (self.sign() - 1));
        let special = match self.special {
            Special::NegativeZero => sign != 0 && magnitude == 0,
            Special::None => false,
            Special::AllOnes | Special::Infinity => magnitude > self.largest(),
        };
        if special {
            let infinite = self.special == Special::Infinity && magnitude == self.largest() + 1;
            return match (infinite, sign) {
                (true, 0) => f32::INFINITY,
                (true, _) => f32::NEG_INFINITY,
                _ => f32::NAN,
            };
        }
        // Moves the exponent from one bias to the other, subnormal numbers included.
        let number = f32::from_bits(u32::from(magnitude) << (23 - self.mantissa_bits));
        let number = number * f32::from_bits(((254 - self.bias) as u32) << 23);
        if sign == 0 { number } else { -number }
    }

    /// The bits of the number nearest to `value`, ties to even.
    pub fn encode(self, value: f64, overflow: Overflow) -> u8 {
        let negative = if value.is_sign_negative() {
            self.sign()
        } else {
            0
        };
        let nan = match self.special {
            Special::Infinity | Special::AllOnes => negative | (self.sign() - 1),
            // Float4 and float6 have no NaN; it becomes what ml_dtypes makes of it.
            Special::NegativeZero | Special::None => self.sign(),
        };
        if value.is_nan() {
            return nan;
        }
        let size = value.abs();
        let lowest = 1 - self.bias;
        // No format here reaches 2^17, and below it the scale is a normal number.
        let magnitude = if size >= 131_072.0 {
            u32::MAX
        } else {
            let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(lowest);
            let step = exponent - self.mantissa_bits as i32;
            let scale = f64::from_bits(((1023 - step) as u64) << 52);
            // A mantissa that is rounded up to a power of two carries into the exponent.
            let mantissa = (size * scale).round_ties_even() as u32;
            (((exponent - lowest) as u32) << self.mantissa_bits) + mantissa
        };
        let magnitude = match u8::try_from(magnitude) {
            Ok(m) if m <= self.largest() => m,
            _ => match (overflow, self.special) {
                (Overflow::Saturate, _) | (_, Special::None) => self.largest(),
                (_, Special::Infinity) => self.largest() + 1,
                _ => return nan,
            },
        };
        match self.special {
            Special::NegativeZero if magnitude == 0 => 0,
            _ => negative | magnitude,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMATS: [Minifloat; 7] = [
        Minifloat::F8E4M3FN,
        Minifloat::F8E4M3FNUZ,
        Minifloat::F8E5M2,
        Minifloat::F8E5M2FNUZ,
        Minifloat::F4E2M1,
        Minifloat::F6E2M3,
        Minifloat::F6E3M2,
    ];

    /// Every number of a format that is not negative, in order.
    fn numbers(format: Minifloat) -> Vec<f64> {
        let all = (0..=format.largest()).map(|b| f64::from(format.decode(b)));
        all.collect()
    }

    #[test]
    fn the_largest_and_the_smallest_are_those_of_the_standards() {
        let ends = FORMATS.map(|f| {
            let all = numbers(f);
            (all[1], all[all.len() - 1])
        });
        let power = |n: i32| 2f64.powi(n);
        assert_eq!(
            ends,
            [
                (power(-9), 448.0),
                (power(-10), 240.0),
                (power(-16), 57344.0),
                (power(-17), 57344.0),
                (0.5, 6.0),
                (0.125, 7.5),
                (0.0625, 28.0),
            ]
        );
        assert_eq!(Minifloat::F8E5M2.decode(0x7c), f32::INFINITY);
        assert_eq!(Minifloat::F8E5M2.decode(0xfc), f32::NEG_INFINITY);
        for (format, bits) in [
            (Minifloat::F8E4M3FN, 0x7f),
            (Minifloat::F8E4M3FN, 0xff),
            (Minifloat::F8E4M3FNUZ, 0x80),
            (Minifloat::F8E5M2, 0x7d),
            (Minifloat::F8E5M2FNUZ, 0x80),
        ] {
            assert!(format.decode(bits).is_nan());
        }
    }

    #[test]
    fn every_number_ties_and_the_neighbourhood_of_ties() {
        for format in FORMATS {
            let all = numbers(format);
            for (low, pair) in all.windows(2).enumerate() {
                let (low, high) = (low as u8, low as u8 + 1);
                assert!(pair[0] < pair[1]);
                assert_eq!(format.encode(pair[0], Overflow::Special), low);
                let tie = (pair[0] + pair[1]) / 2.0;
                let even = if low % 2 == 0 { low } else { high };
                for (value, want) in [(tie, even), (tie.next_down(), low), (tie.next_up(), high)] {
                    assert_eq!(format.encode(value, Overflow::Saturate), want, "{value}");
                    let minus = format.encode(-value, Overflow::Saturate);
                    let zero = want == 0 && format.special == Special::NegativeZero;
                    assert_eq!(minus, if zero { 0 } else { want | format.sign() });
                }
            }
        }
    }

    #[test]
    fn what_is_too_large_saturates_or_becomes_special() {
        for (format, special) in FORMATS
            .into_iter()
            .zip([0x7f, 0x80, 0x7c, 0x80, 0x07, 0x1f, 0x1f])
        {
            for value in [1e6, 65535.0, f64::MAX, f64::INFINITY] {
                let saturated = format.encode(value, Overflow::Saturate);
                assert_eq!(saturated, format.largest());
                assert_eq!(format.encode(value, Overflow::Special), special);
            }
        }
        // Halfway to the next number, were there one: the tie is to the even one, which is not there.
        let format = Minifloat::F8E4M3FN;
        assert_eq!(format.encode(464.0, Overflow::Special), 0x7e);
        assert_eq!(format.encode(464.1, Overflow::Special), 0x7f);
        assert_eq!(Minifloat::F8E5M2.encode(61440.0, Overflow::Special), 0x7c);
        assert_eq!(Minifloat::F8E5M2.encode(61439.0, Overflow::Special), 0x7b);
    }
}
