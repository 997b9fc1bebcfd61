//! Fixed-point arithmetic as TFLite's reference kernels define it: factors of 31 bits with a shift,
//! and the functions of gemmlowp's `fixedpoint.h`. All of it is integer arithmetic, so results are
//! the same on every machine.

use crate::Reflect;
use crate::error::{Result, value_error};

/// A factor of at least zero: `multiplier / 2^31 * 2^shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reflect)]
pub struct Factor {
    pub multiplier: i32,
    pub shift: i32,
}

impl Factor {
    /// The factor closest to `real` (TFLite's `QuantizeMultiplier`).
    ///
    /// # Errors
    /// `InvalidValue` for negative numbers, for what is no number, and from 2^31 on.
    pub fn new(real: f64) -> Result<Factor> {
        const ZERO: Factor = Factor {
            multiplier: 0,
            shift: 0,
        };
        if !(0.0..f64::from(1u32 << 31)).contains(&real) {
            return Err(value_error(format!("the factor of a rescaling is {real}")));
        }
        // Below 2^-40 nothing is left of 32 bits; subnormal numbers are among it.
        if real < f64::from(f32::MIN_POSITIVE) {
            return Ok(ZERO);
        }
        let bits = real.to_bits();
        let mut shift = (bits >> 52) as i32 - 1022;
        let fraction = f64::from_bits(bits & ((1 << 52) - 1) | (1022 << 52));
        let mut whole = (fraction * (1u64 << 31) as f64).round() as i64;
        if whole == 1 << 31 {
            whole /= 2;
            shift += 1;
        }
        if shift < -31 {
            return Ok(ZERO);
        }
        Ok(Factor {
            multiplier: whole as i32,
            shift,
        })
    }

    /// Checks that the multiplier is not negative, and that the shift is of 31 bits or less.
    ///
    /// # Errors
    /// `InvalidValue` where it is not so.
    pub fn check(self) -> Result<()> {
        match self.multiplier >= 0 && (-31..=31).contains(&self.shift) {
            true => Ok(()),
            false => Err(value_error("the factor of a rescaling is out of its range")
                .with_got(format_args!("{} * 2^{}", self.multiplier, self.shift))),
        }
    }

    /// The factor as a real number.
    pub fn value(self) -> f64 {
        f64::from(self.multiplier) * 2f64.powi(self.shift - 31)
    }

    /// The factor over `count` for a mean; as in TFLite's, what is left of the division is cut off.
    pub fn over(self, count: u32) -> Factor {
        let count = count.max(1);
        let bits = count.ilog2().min((31 + self.shift).max(0).unsigned_abs());
        Factor {
            multiplier: ((i64::from(self.multiplier) << bits) / i64::from(count)) as i32,
            shift: self.shift - bits as i32,
        }
    }

    /// `x` times the factor, rounded twice (`MultiplyByQuantizedMultiplier`).
    #[inline(always)]
    pub fn apply(self, x: i32) -> i32 {
        let (left, right) = (self.shift.max(0) as u32, (-self.shift).max(0) as u32);
        divide_by_power(
            high_product::<32>(x.wrapping_shl(left), self.multiplier),
            right,
        )
    }
}

/// `a * b / 2^(BITS - 1)` rounded to the nearest, ties up; `-1 * -1` saturates. For raw numbers of
/// `BITS` bits (`SaturatingRoundingDoublingHighMul`).
#[inline(always)]
pub fn high_product<const BITS: u32>(a: i32, b: i32) -> i32 {
    let product = i64::from(a) * i64::from(b);
    let rounded = (product + (1 << (BITS - 2))) >> (BITS - 1);
    rounded.min(largest::<BITS>().into()) as i32
}

/// `x / 2^exponent` rounded to the nearest, ties away from zero (`RoundingDivideByPOT`).
#[inline(always)]
pub fn divide_by_power(x: i32, exponent: u32) -> i32 {
    let mask = ((1i64 << exponent) - 1) as i32;
    let threshold = (mask >> 1) + i32::from(x < 0);
    (x >> exponent.min(31)) + i32::from(x & mask > threshold)
}

const fn largest<const BITS: u32>() -> i32 {
    ((1i64 << (BITS - 1)) - 1) as i32
}

/// `x * 2^exponent`, saturated to `BITS` bits.
fn times_power<const BITS: u32>(x: i32, exponent: u32) -> i32 {
    let high = i64::from(largest::<BITS>());
    (i64::from(x) << exponent).clamp(-high - 1, high) as i32
}

/// A constant of 32 bits as one of `BITS`.
fn constant<const BITS: u32>(raw: i32) -> i32 {
    match BITS {
        32 => raw,
        _ => raw.saturating_add(1 << (31 - BITS)) >> (32 - BITS),
    }
}

/// `(a + b) / 2`, ties away from zero.
fn half_sum(a: i32, b: i32) -> i32 {
    let sum = i64::from(a) + i64::from(b);
    ((sum + if sum >= 0 { 1 } else { -1 }) / 2) as i32
}

fn negative(a: i32) -> i32 {
    if a > 0 { -a } else { a }
}

/// `e^a` for `a <= 0` with `integer` bits before the point; the result has none.
pub fn exp_of_negative<const BITS: u32>(a: i32, integer: u32) -> i32 {
    let fractional = BITS - 1 - integer;
    let quarter = 1 << (fractional - 2);
    let in_quarter = (a & (quarter - 1)) - quarter;
    let mut result = exp_of_quarter::<BITS>(times_power::<BITS>(in_quarter, integer));
    let rest = in_quarter - a;
    // e^-1/4, e^-1/2 .. e^-16.
    let powers = [
        1_672_461_947,
        1_302_514_674,
        790_015_084,
        290_630_308,
        39_332_535,
        720_401,
        242,
    ];
    for (i, power) in powers.into_iter().enumerate() {
        let bit = fractional + i as u32 - 2;
        if bit < BITS - 1 && rest & (1 << bit) != 0 {
            result = high_product::<BITS>(result, constant::<BITS>(power));
        }
    }
    // e^-32 is nothing.
    if integer > 5 && a < -(1 << (BITS + 4 - integer)) {
        return 0;
    }
    if a == 0 { largest::<BITS>() } else { result }
}

/// `e^a` for `-1/4 <= a < 0`: a Taylor series around -1/8.
fn exp_of_quarter<const BITS: u32>(a: i32) -> i32 {
    let middle = constant::<BITS>(1_895_147_668);
    let third = constant::<BITS>(715_827_883);
    let x = a + (1 << (BITS - 4));
    let x2 = high_product::<BITS>(x, x);
    let x3 = high_product::<BITS>(x2, x);
    let x4 = high_product::<BITS>(x2, x2);
    let sum = high_product::<BITS>(divide_by_power(x4, 2) + x3, third) + x2;
    let series = x + divide_by_power(sum, 1);
    (middle + high_product::<BITS>(middle, series)).min(largest::<BITS>())
}

/// `4 / (1 + a)` in eighths, so with two bits before the point: three steps of Newton and Raphson.
fn quotient<const BITS: u32>(a: i32) -> i32 {
    let half = half_sum(a, largest::<BITS>());
    let mut x = constant::<BITS>(1_515_870_810)
        + high_product::<BITS>(half, constant::<BITS>(-1_010_580_540));
    for _ in 0..3 {
        let rest = (1 << (BITS - 3)) - high_product::<BITS>(half, x);
        x += times_power::<BITS>(high_product::<BITS>(x, rest), 2);
    }
    x
}

/// `1 / (1 + a)` for `a` in 0..1, no bits before the point.
pub fn reciprocal_of_one_more<const BITS: u32>(a: i32) -> i32 {
    times_power::<BITS>(quotient::<BITS>(a), 1)
}

/// The logistic function of a number with `integer` bits before the point; the result has none.
pub fn logistic<const BITS: u32>(a: i32, integer: u32) -> i32 {
    if a == 0 {
        return constant::<BITS>(1 << 30);
    }
    let positive = reciprocal_of_one_more::<BITS>(exp_of_negative::<BITS>(negative(a), integer));
    match a > 0 {
        true => positive,
        false => largest::<BITS>() - positive,
    }
}

/// The hyperbolic tangent of a number with `integer` bits before the point; the result has none.
pub fn tanh<const BITS: u32>(a: i32, integer: u32) -> i32 {
    if a == 0 {
        return 0;
    }
    let e = exp_of_negative::<BITS>(negative(a), integer + 1);
    let t = times_power::<BITS>(quotient::<BITS>(e) - (1 << (BITS - 3)), 2);
    if a > 0 { t } else { -t }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_multiply() {
        for real in [0.75, 0.000_123, 1.0, 3.999_999_999_9, 1e-9, 0.0, 200.5] {
            let factor = Factor::new(real).expect("a factor");
            for x in [0, 1, -1, 77, -1000, 123_456, -2_000_000] {
                let want = real * f64::from(x);
                let got = f64::from(factor.apply(x));
                assert!(
                    (got - want).abs() <= 0.51 + want.abs() * 1e-9,
                    "{real} {x} {got}"
                );
            }
        }
        for bad in [-1.0, f64::NAN, f64::INFINITY, 3e9] {
            assert!(Factor::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rounding_is_that_of_the_reference() {
        // Ties go up in the product, away from zero in the division.
        assert_eq!(high_product::<32>(1 << 30, 1), 1);
        assert_eq!(high_product::<32>(1 << 30, -1), 0);
        assert_eq!(high_product::<32>(i32::MIN, i32::MIN), i32::MAX);
        assert_eq!(
            [3, -3, 2, -2, 5].map(|x| divide_by_power(x, 1)),
            [2, -2, 1, -1, 3]
        );
        assert_eq!(divide_by_power(i32::MAX, 31), 1);
    }

    /// The series of `exp_of_quarter` ends with the fourth power of at most 1/8, so that it is off
    /// by up to `(1/8)^5 / 5!` of `e^a`. Of that, at most a quarter is left in `1 / (1 + e^a)` and
    /// half in `2 / (1 + e^a) - 1`. Beside it there are some roundings in the last of 31 or, of
    /// quotients with two bits before the point, 29 bits.
    #[test]
    fn functions_come_close() {
        let bound =
            |part: f64, bits: i32| part * 0.125f64.powi(5) / 120.0 + 16.0 * 0.5f64.powi(bits);
        let one = f64::from(i32::MAX);
        for step in 0..2000 {
            let real = f64::from(step) / 100.0 - 10.0;
            let raw = (real * f64::from(1 << 27)) as i32;
            let real = f64::from(raw) / f64::from(1 << 27);
            let close = |got: i32, want: f64, bound: f64| {
                let off = (f64::from(got) / one - want).abs();
                assert!(off < bound, "{real}: {got} {want}, off by {off}");
            };
            let sigmoid = 1.0 / (1.0 + (-real).exp());
            close(logistic::<32>(raw, 4), sigmoid, bound(0.25, 31));
            close(tanh::<32>(raw, 4), real.tanh(), bound(0.5, 29));
            if real <= 0.0 {
                close(exp_of_negative::<32>(raw, 4), real.exp(), bound(1.0, 31));
            }
            let raw = (real.clamp(-7.9, 7.9) * f64::from(1 << 12)) as i32;
            let real = f64::from(raw) / f64::from(1 << 12);
            let close = |got: i32, want: f64| {
                let got = f64::from(got) / 32768.0;
                assert!((got - want).abs() < 4e-4, "{real}: {got} {want}");
            };
            close(logistic::<16>(raw, 3), 1.0 / (1.0 + (-real).exp()));
            close(tanh::<16>(raw, 3), real.tanh());
        }
    }
}
