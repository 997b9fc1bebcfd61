// 64-bit integers as two words, low first.

fn low(x: vec2<u32>) -> i32 {
    return bitcast<i32>(x.x);
}

fn widen(x: i32) -> vec2<u32> {
    return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u));
}

fn add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let x = a.x + b.x;
    return vec2<u32>(x, a.y + b.y + select(0u, 1u, x < a.x));
}

fn neg64(a: vec2<u32>) -> vec2<u32> {
    return add64(~a, vec2<u32>(1u, 0u));
}

fn mul64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let al = a.x & 0xffffu;
    let ah = a.x >> 16u;
    let bl = b.x & 0xffffu;
    let bh = b.x >> 16u;
    let mid = ah * bl + ((al * bl) >> 16u);
    let mid2 = al * bh + (mid & 0xffffu);
    let high = ah * bh + (mid >> 16u) + (mid2 >> 16u);
    return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);
}

fn less64(a: vec2<u32>, b: vec2<u32>) -> bool {
    let ah = bitcast<i32>(a.y);
    let bh = bitcast<i32>(b.y);
    return ah < bh || (ah == bh && a.x < b.x);
}

fn less_unsigned(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

// Shifts by less than 64.
fn shift_left(a: vec2<u32>, n: u32) -> vec2<u32> {
    if n == 0u { return a; }
    if n >= 32u { return vec2<u32>(0u, a.x << (n - 32u)); }
    return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}

// What comes in from above is `fill`: zeros, or ones for a sign.
fn shift_right(a: vec2<u32>, n: u32, fill: u32) -> vec2<u32> {
    if n == 0u { return a; }
    if n == 32u { return vec2<u32>(a.y, fill); }
    if n > 32u { return vec2<u32>((a.y >> (n - 32u)) | (fill << (64u - n)), fill); }
    return vec2<u32>((a.x >> n) | (a.y << (32u - n)), (a.y >> n) | (fill << (32u - n)));
}

struct Division { quotient: vec2<u32>, rest: vec2<u32> }

// Divides unsigned numbers; b is not zero.
fn divide(a: vec2<u32>, b: vec2<u32>) -> Division {
    if (a.y | b.y) == 0u {
        return Division(vec2<u32>(a.x / b.x, 0u), vec2<u32>(a.x % b.x, 0u));
    }
    var d = Division(vec2<u32>(0u, 0u), vec2<u32>(0u, 0u));
    for (var i = 0u; i < 64u; i++) {
        let carry = d.rest.y >> 31u;
        d.rest = shift_left(d.rest, 1u);
        d.rest.x |= shift_right(a, 63u - i, 0u).x & 1u;
        d.quotient = shift_left(d.quotient, 1u);
        if carry == 1u || !less_unsigned(d.rest, b) {
            d.rest = add64(d.rest, neg64(b));
            d.quotient.x |= 1u;
        }
    }
    return d;
}

// To the nearest f32, ties to even.
fn float_unsigned(a: vec2<u32>) -> f32 {
    // The top 32 bits from the first one on; whether a bit is lost is kept in the last.
    var shift = 0u;
    var top = a.x;
    if a.y != 0u {
        shift = 32u - countLeadingZeros(a.y);
        if shift == 32u {
            top = a.y;
            if a.x != 0u { top |= 1u; }
        } else {
            top = (a.y << (32u - shift)) | (a.x >> shift);
            if (a.x << (32u - shift)) != 0u { top |= 1u; }
        }
    }
    // Round to 24 bits here: the rounding of f32(u32) is not specified.
    let lead = countLeadingZeros(top);
    if lead < 8u {
        let drop = 8u - lead;
        let half = 1u << (drop - 1u);
        let rest = top & ((1u << drop) - 1u);
        var kept = top >> drop;
        if rest > half || (rest == half && (kept & 1u) == 1u) { kept += 1u; }
        top = kept;
        shift += drop;
    }
    return ldexp(f32(top), i32(shift));
}

fn float64(v: vec2<u32>) -> f32 {
    if (v.y & 0x80000000u) != 0u { return -float_unsigned(neg64(v)); }
    return float_unsigned(v);
}

// The whole part of a number below 2^64 without its sign.
fn whole(x: f32) -> vec2<u32> {
    let bits = bitcast<u32>(x);
    let exponent = i32((bits >> 23u) & 0xffu) - 150;
    let mantissa = (bits & 0x7fffffu) | 0x800000u;
    if exponent <= -24 { return vec2<u32>(0u, 0u); }
    if exponent < 0 { return vec2<u32>(mantissa >> u32(-exponent), 0u); }
    return shift_left(vec2<u32>(mantissa, 0u), u32(exponent));
}

// Towards zero, NaN to 0 and what is too large to the ends.
fn truncate64(x: f32) -> vec2<u32> {
    let bits = bitcast<u32>(x);
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u { return vec2<u32>(0u, 0u); }
    let negative = bits != magnitude;
    // 2^63
    if magnitude >= 0x5f000000u {
        return select(vec2<u32>(0xffffffffu, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), negative);
    }
    let r = whole(x);
    if negative { return neg64(r); }
    return r;
}

// Truncates to an unsigned number of 64 bits; what is negative wraps.
fn truncate_unsigned(x: f32) -> vec2<u32> {
    let bits = bitcast<u32>(x);
    // From 2^63 on up to 2^64, and up to infinity.
    if bits >= 0x5f000000u && bits < 0x5f800000u { return whole(x); }
    if bits >= 0x5f800000u && bits <= 0x7f800000u { return vec2<u32>(0xffffffffu, 0xffffffffu); }
    return truncate64(x);
}
