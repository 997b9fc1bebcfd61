// Half precision in the low 16 bits of a word, FORMAT f16 or bf16. By bits: conversion built-ins may
// lose subnormals.
#type Format f16 bf16

#if FORMAT == bf16
fn half_bits(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if (bits & 0x7fffffffu) > 0x7f800000u { return (bits >> 16u) | 0x40u; }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

fn half_value(h: u32) -> f32 {
    return bitcast<f32>(h << 16u);
}
#else
fn half_bits(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let sign = (bits >> 16u) & 0x8000u;
    let a = bits & 0x7fffffffu;
    if a > 0x7f800000u { return sign | 0x7e00u; }
    if a >= 0x477ff000u { return sign | 0x7c00u; }
    if a < 0x38800000u {
        // Below the smallest normal number the step is 2^-24; round() takes ties to even.
        return sign | u32(round(bitcast<f32>(a) * 16777216.0));
    }
    return sign | ((a + 0xfffu + ((a >> 13u) & 1u) - 0x38000000u) >> 13u);
}

fn half_value(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let exponent = (h >> 10u) & 0x1fu;
    let mantissa = h & 0x3ffu;
    if exponent == 0u {
        let v = f32(mantissa) * 5.9604644775390625e-8;
        return select(v, -v, sign != 0u);
    }
    if exponent == 31u { return bitcast<f32>(sign | 0x7f800000u | (mantissa << 13u)); }
    return bitcast<f32>(sign | ((exponent + 112u) << 23u) | (mantissa << 13u));
}
#endif
