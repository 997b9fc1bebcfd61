//! The functions of pointwise operators, one element at a time.

use kilim_core::ops::{BinaryKind, UnaryKind};

use crate::common::activation::{clip, hard_sigmoid, relu, sigmoid};
use crate::common::is_nan;

/// A function of one `float32`, or `None` where the kind is not one of floating point.
///
/// The kind is matched outside of the loop, so that each loop is over one function.
pub fn map_f32(kind: UnaryKind, x: &[f32], y: &mut [f32]) {
    use UnaryKind::*;
    match kind {
        Identity => y.copy_from_slice(x),
        Abs => map(x, y, f32::abs),
        Neg => map(x, y, |v| -v),
        Sign => map(x, y, |v| {
            if v > 0.0 {
                1.0
            } else if v < 0.0 {
                -1.0
            } else {
                v
            }
        }),
        Exp => map(x, y, f32::exp),
        Log => map(x, y, f32::ln),
        Sqrt => map(x, y, f32::sqrt),
        Reciprocal => map(x, y, |v| 1.0 / v),
        Floor => map(x, y, f32::floor),
        Ceil => map(x, y, f32::ceil),
        Round => map(x, y, f32::round_ties_even),
        Relu => map(x, y, relu),
        Sigmoid => map(x, y, sigmoid),
        Tanh => map(x, y, f32::tanh),
        LeakyRelu { alpha } => map(x, y, |v| if v < 0.0 { alpha * v } else { v }),
        HardSigmoid { alpha, beta } => map(x, y, |v| hard_sigmoid(v, alpha, beta)),
        HardSwish => map(x, y, |v| v * hard_sigmoid(v, 1.0 / 6.0, 0.5)),
        ThresholdedRelu { alpha } => map(x, y, |v| if v > alpha { v } else { 0.0 }),
        Clip { min, max } => {
            let (min, max) = (min as f32, max as f32);
            map(x, y, |v| clip(v, min, max));
        }
        Swish { alpha } => map(x, y, |v| v * sigmoid(alpha * v)),
        Erf => map(x, y, libm::erff),
        Gelu { tanh: false } => map(x, y, |v| {
            0.5 * v * libm::erfcf(-v * std::f32::consts::FRAC_1_SQRT_2)
        }),
        // The rest is seldom hot: one loop for all.
        _ => map(x, y, |v| of_f64(kind, f64::from(v)) as f32),
    }
}

fn map(x: &[f32], y: &mut [f32], f: impl Fn(f32) -> f32) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f(x);
    }
}

/// A function of one `float64`.
pub fn of_f64(kind: UnaryKind, x: f64) -> f64 {
    use UnaryKind::*;
    match kind {
        Identity => x,
        Abs => x.abs(),
        Neg => -x,
        Sign if x > 0.0 => 1.0,
        Sign if x < 0.0 => -1.0,
        Sign => x,
        Exp => x.exp(),
        Log => x.ln(),
        Sqrt => x.sqrt(),
        Reciprocal => 1.0 / x,
        Floor => x.floor(),
        Ceil => x.ceil(),
        Round => x.round_ties_even(),
        Sin => x.sin(),
        Cos => x.cos(),
        Tan => x.tan(),
        Asin => x.asin(),
        Acos => x.acos(),
        Atan => x.atan(),
        Sinh => x.sinh(),
        Cosh => x.cosh(),
        Tanh => x.tanh(),
        Asinh => libm::asinh(x),
        Acosh => libm::acosh(x),
        Atanh => libm::atanh(x),
        Erf => libm::erf(x),
        Sigmoid => sigmoid64(x),
        Relu if x < 0.0 => 0.0,
        Relu => x,
        Softplus => softplus(x),
        Softsign => x / (1.0 + x.abs()),
        LeakyRelu { alpha } if x < 0.0 => f64::from(alpha) * x,
        LeakyRelu { .. } => x,
        Elu { alpha } if x < 0.0 => f64::from(alpha) * x.exp_m1(),
        Elu { .. } => x,
        Selu { alpha, gamma } if x <= 0.0 => f64::from(gamma) * f64::from(alpha) * x.exp_m1(),
        Selu { gamma, .. } => f64::from(gamma) * x,
        Celu { alpha } if x < 0.0 => {
            let alpha = f64::from(alpha);
            alpha * (x / alpha).exp_m1()
        }
        Celu { .. } => x,
        HardSigmoid { alpha, beta } => clip64(f64::from(alpha) * x + f64::from(beta), 0.0, 1.0),
        HardSwish => x * clip64(x / 6.0 + 0.5, 0.0, 1.0),
        Mish => x * softplus(x).tanh(),
        Gelu { tanh: false } => 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        Gelu { tanh: true } => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            // 0.5 (1 + tanh u) without the cancellation at large negative u.
            x * sigmoid64(2.0 * inner)
        }
        ThresholdedRelu { alpha } if x > f64::from(alpha) => x,
        ThresholdedRelu { .. } => 0.0,
        Shrink { bias, lambda } => {
            let (bias, lambda) = (f64::from(bias), f64::from(lambda));
            if x < -lambda {
                x + bias
            } else if x > lambda {
                x - bias
            } else {
                0.0
            }
        }
        Swish { alpha } => x * sigmoid64(f64::from(alpha) * x),
        Clip { min, max } => clip64(x, min, max),
        Not => f64::from(u8::from(x == 0.0)),
        IsNaN | IsInf { .. } => f64::from(u8::from(test(kind, x))),
        BitwiseNot => x,
    }
}

/// IsNaN and IsInf.
pub fn test(kind: UnaryKind, x: f64) -> bool {
    match kind {
        UnaryKind::IsNaN => x.is_nan(),
        UnaryKind::IsInf { negative, positive } => {
            x.is_infinite() && if x < 0.0 { negative } else { positive }
        }
        _ => false,
    }
}

/// A function of one integer that was widened; it wraps when it is narrowed again.
pub fn of_i64(kind: UnaryKind, x: i64, unsigned: bool) -> i64 {
    match kind {
        UnaryKind::Abs if !unsigned => x.wrapping_abs(),
        UnaryKind::Neg => x.wrapping_neg(),
        UnaryKind::Sign if unsigned => i64::from(x != 0),
        UnaryKind::Sign => x.signum(),
        UnaryKind::BitwiseNot => !x,
        UnaryKind::Not => i64::from(x == 0),
        UnaryKind::Relu if !unsigned => x.max(0),
        UnaryKind::Clip { min, max } if unsigned => {
            (x as u64).max(min as u64).min(max as u64) as i64
        }
        UnaryKind::Clip { min, max } => x.max(min as i64).min(max as i64),
        // ONNX allows integers for LeakyRelu's like only through its float types; Shrink takes all.
        UnaryKind::Shrink { .. } => of_f64(kind, x as f64) as i64,
        _ => x,
    }
}

fn sigmoid64(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 {
        e / (1.0 + e)
    } else {
        1.0 / (1.0 + e)
    }
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn clip64(x: f64, min: f64, max: f64) -> f64 {
    let low = if x < min { min } else { x };
    if low > max { max } else { low }
}

/// What arithmetic needs of a number that kernels compute in.
pub trait Number: kilim_host::elements::Wide {
    /// The arithmetic kinds; `None` where the kind is not one of this type.
    fn arithmetic(kind: BinaryKind) -> Option<fn(Self, Self) -> Self>;
}

fn maximum<T: PartialOrd + Copy>(a: T, b: T) -> T {
    if a > b || is_nan(a) { a } else { b }
}

fn minimum<T: PartialOrd + Copy>(a: T, b: T) -> T {
    if a < b || is_nan(a) { a } else { b }
}

macro_rules! float_number {
    ($($t:ident),*) => { $(impl Number for $t {
        fn arithmetic(kind: BinaryKind) -> Option<fn($t, $t) -> $t> {
            Some(match kind {
                BinaryKind::Add => |a, b| a + b,
                BinaryKind::Sub => |a, b| a - b,
                BinaryKind::Mul => |a, b| a * b,
                BinaryKind::Div => |a, b| a / b,
                BinaryKind::Pow => |a, b| a.powf(b),
                BinaryKind::Max => maximum,
                BinaryKind::Min => minimum,
                BinaryKind::Fmod => |a, b| a % b,
                BinaryKind::Mod => |a, b| {
                    let r = a % b;
                    if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
                },
                BinaryKind::PRelu => |a, b| if a < 0.0 { a * b } else { a },
                _ => return None,
            })
        }
    })* };
}
float_number!(f32, f64);

macro_rules! integer_number {
    ($($t:ident: $pow:expr, $modulo:expr),*) => { $(impl Number for $t {
        fn arithmetic(kind: BinaryKind) -> Option<fn($t, $t) -> $t> {
            Some(match kind {
                BinaryKind::Add => |a, b| a.wrapping_add(b),
                BinaryKind::Sub => |a, b| a.wrapping_sub(b),
                BinaryKind::Mul => |a, b| a.wrapping_mul(b),
                // numpy gives 0 for a division by zero.
                BinaryKind::Div => |a, b| if b == 0 { 0 } else { a.wrapping_div(b) },
                BinaryKind::Fmod => |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) },
                BinaryKind::Mod => $modulo,
                BinaryKind::Pow => $pow,
                BinaryKind::Max => |a, b| a.max(b),
                BinaryKind::Min => |a, b| a.min(b),
                BinaryKind::And | BinaryKind::BitwiseAnd => |a, b| a & b,
                BinaryKind::Or | BinaryKind::BitwiseOr => |a, b| a | b,
                BinaryKind::Xor | BinaryKind::BitwiseXor => |a, b| a ^ b,
                BinaryKind::ShiftLeft => |a, b| if (0..64).contains(&b) { a << b } else { 0 },
                // A shift by the width or more, or by less than nothing, leaves the sign.
                BinaryKind::ShiftRight => |a, b| match (0..64).contains(&b) {
                    true => a >> b,
                    false if a < $t::MIN.max(0) => !0,
                    false => 0,
                },
                BinaryKind::PRelu => |a, b| if a < $t::MIN.max(0) { a.wrapping_mul(b) } else { a },
                _ => return None,
            })
        }
    })* };
}
integer_number!(
    i64: |a, b| power(a, b as u64, b < 0, a == 1 || a == -1),
        |a: i64, b: i64| {
            if b == 0 { return 0; }
            let r = a.wrapping_rem(b);
            if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
        },
    u64: |a, b| power(a as i64, b, false, false) as u64,
        |a, b| if b == 0 { 0 } else { a % b }
);

/// `a` to a whole power, wrapping. A negative power truncates to 0, but for `a` = ±1.
fn power(a: i64, b: u64, negative: bool, unit: bool) -> i64 {
    if negative {
        return match unit {
            true if b.is_multiple_of(2) => 1,
            true => a,
            false => 0,
        };
    }
    let (mut base, mut left, mut result) = (a, b, 1i64);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        left >>= 1;
    }
    result
}

/// The comparisons.
pub fn comparison<T: PartialOrd>(kind: BinaryKind) -> Option<fn(&T, &T) -> bool> {
    Some(match kind {
        BinaryKind::Equal => T::eq,
        BinaryKind::Less => T::lt,
        BinaryKind::LessOrEqual => T::le,
        BinaryKind::Greater => T::gt,
        BinaryKind::GreaterOrEqual => T::ge,
        _ => return None,
    })
}
