// Quantised results have one right value. WGSL leaves division and some conversions a choice of
// neighbours: what decides between two steps is computed in integers here.
#include "shared/int64.wgsl"

struct Parts { mantissa: u32, exponent: i32 }

// A number that is not zero as a mantissa of 24 bits, its first bit set, and an exponent.
fn parts(bits: u32) -> Parts {
    let field = bits >> 23u;
    let mantissa = bits & 0x7fffffu;
    if field != 0u { return Parts(mantissa | 0x800000u, i32(field)); }
    let shift = countLeadingZeros(mantissa) - 8u;
    return Parts(mantissa << shift, 1 - i32(shift));
}

// a / b of the bits of f32, rounded to the nearest, ties to even.
fn quotient(a: u32, b: u32) -> u32 {
    const INFINITE = 0x7f800000u;
    let sign = (a ^ b) & 0x80000000u;
    let u = a & 0x7fffffffu;
    let v = b & 0x7fffffffu;
    if u > INFINITE || v > INFINITE || (u == v && (u == 0u || u == INFINITE)) { return 0x7fc00000u; }
    if u == 0u || v == INFINITE { return sign; }
    if v == 0u || u == INFINITE { return sign | INFINITE; }
    let x = parts(u);
    let y = parts(v);
    let less = x.mantissa < y.mantissa;
    let top = x.mantissa << select(0u, 1u, less);
    // 25 bits: those of the result, and one more. The estimate is off by a few steps.
    var q = u32(f32(top) / f32(y.mantissa) * 16777216.0);
    var rest = bitcast<i32>((top << 24u) - q * y.mantissa);
    for (var i = 0; i < 16 && rest < 0; i++) {
        q -= 1u;
        rest += i32(y.mantissa);
    }
    for (var i = 0; i < 16 && rest >= i32(y.mantissa); i++) {
        q += 1u;
        rest -= i32(y.mantissa);
    }
    let exponent = x.exponent - y.exponent + select(127, 126, less);
    if exponent > 254 { return sign | INFINITE; }
    // A subnormal number has fewer bits.
    let drop = u32(clamp(2 - exponent, 1, 26));
    let half = 1u << (drop - 1u);
    let lost = q & (2u * half - 1u);
    let kept = q >> drop;
    let up = lost > half || (lost == half && (rest != 0 || (kept & 1u) == 1u));
    // Rounding up carries into the exponent, to which the first bit adds one.
    return sign | ((u32(max(exponent - 1, 0)) << 23u) + kept + select(0u, 1u, up));
}

// The magnitude within 2^30; of NaN, 0.
fn bounded(bits: u32) -> f32 {
    let m = bits & 0x7fffffffu;
    return bitcast<f32>(select(min(m, 0x4e800000u), 0u, m > 0x7f800000u));
}

// The nearest integer within 2^30, ties to even; of NaN, 0.
fn rounded(bits: u32) -> i32 {
    let v = i32(round(bounded(bits)));
    return select(v, -v, bits >> 31u == 1u);
}

// The nearest f32. Both parts are exact.
fn nearest(x: i32) -> f32 {
    return f32(x >> 8u) * 256.0 + f32(x & 0xff);
}

// `Factor::apply` in core/src/fixed.rs: rounded twice.
fn fixed(x: i32, multiplier: i32, shift: i32) -> i32 {
    let product = mul64(widen(x << u32(max(shift, 0))), widen(multiplier));
    let sum = add64(product, vec2<u32>(1u << 30u, 0u));
    return divide_by_power(bitcast<i32>((sum.y << 1u) | (sum.x >> 31u)), u32(max(-shift, 0)));
}

// x / 2^exponent, ties away from zero.
fn divide_by_power(x: i32, exponent: u32) -> i32 {
    let mask = bitcast<i32>((1u << exponent) - 1u);
    let threshold = (mask >> 1u) + select(0, 1, x < 0);
    return (x >> exponent) + select(0, 1, (x & mask) > threshold);
}
