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

// Of unsigned numbers; b is not zero.
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

// Towards zero.
fn truncate64(x: f32) -> vec2<u32> {
    let bits = bitcast<u32>(x);
    let exponent = i32((bits >> 23u) & 0xffu) - 150;
    let mantissa = (bits & 0x7fffffu) | 0x800000u;
    var r = vec2<u32>(0u, 0u);
    if exponent <= -24 {
        return r;
    } else if exponent < 0 {
        r.x = mantissa >> u32(-exponent);
    } else if exponent < 32 {
        let s = u32(exponent);
        r.x = mantissa << s;
        if s > 8u { r.y = mantissa >> (32u - s); }
    } else if exponent < 40 {
        r.y = mantissa << u32(exponent - 32);
    } else {
        return vec2<u32>(0u, 0x80000000u);
    }
    if (bits & 0x80000000u) != 0u { return neg64(r); }
    return r;
}
