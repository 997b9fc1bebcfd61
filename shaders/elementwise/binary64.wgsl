// y = f(a, b) on 64-bit integers, broadcasting as in binary.wgsl.
#define T = i64 u64
#define OP: IntegerBinary
#include "shared/index.wgsl"
#include "shared/int64.wgsl"
#include "shared/walk.wgsl"

struct Params { walk: Walk, units: u32 }

#if OP == Equal || OP == Less || OP == LessOrEqual || OP == Greater || OP == GreaterOrEqual
alias R = u32;
#else
alias R = vec2<u32>;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read a: array<vec2<u32>>
#read b: array<vec2<u32>>
#write y: array<R>

fn less(a: vec2<u32>, b: vec2<u32>) -> bool {
#if T == i64
    return less64(a, b);
#else
    return less_unsigned(a, b);
#endif
}

fn is_negative(a: vec2<u32>) -> bool {
#if T == i64
    return (a.y & 0x80000000u) != 0u;
#else
    return false;
#endif
}

fn is_zero(a: vec2<u32>) -> bool {
    return (a.x | a.y) == 0u;
}

fn magnitude(a: vec2<u32>) -> vec2<u32> {
    if is_negative(a) { return neg64(a); }
    return a;
}

fn signed(a: vec2<u32>, negative: bool) -> vec2<u32> {
    if negative { return neg64(a); }
    return a;
}

fn quotient(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    if is_zero(b) { return b; }
    return signed(divide(magnitude(a), magnitude(b)).quotient, is_negative(a) != is_negative(b));
}

// With the sign of a.
fn remainder(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    if is_zero(b) { return b; }
    return signed(divide(magnitude(a), magnitude(b)).rest, is_negative(a));
}

// Wraps. A negative power truncates to 0, but for a of 1 and -1.
fn whole_power(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let one = vec2<u32>(1u, 0u);
    if is_negative(b) {
        if any(magnitude(a) != one) { return vec2<u32>(0u, 0u); }
        return signed(one, is_negative(a) && (b.x & 1u) == 1u);
    }
    var left = b;
    var base = a;
    var r = one;
    while !is_zero(left) {
        if (left.x & 1u) == 1u { r = mul64(r, base); }
        base = mul64(base, base);
        left = shift_right(left, 1u, 0u);
    }
    return r;
}

fn f(a: vec2<u32>, b: vec2<u32>) -> R {
#if OP == Add
    return add64(a, b);
#elif OP == Sub
    return add64(a, neg64(b));
#elif OP == Mul
    return mul64(a, b);
#elif OP == Div
    return quotient(a, b);
#elif OP == Fmod
    return remainder(a, b);
#elif OP == Mod
    let r = remainder(a, b);
    if !is_zero(r) && is_negative(r) != is_negative(b) { return add64(r, b); }
    return r;
#elif OP == Pow
    return whole_power(a, b);
#elif OP == Max
    return select(a, b, less(a, b));
#elif OP == Min
    return select(b, a, less(a, b));
#elif OP == BitwiseAnd
    return a & b;
#elif OP == BitwiseOr
    return a | b;
#elif OP == BitwiseXor
    return a ^ b;
#elif OP == ShiftLeft
    if b.y != 0u || b.x >= 64u { return vec2<u32>(0u, 0u); }
    return shift_left(a, b.x);
#elif OP == ShiftRight
    // By the width or more (a negative count is a large one): what is left is the sign.
    let fill = select(0u, 0xffffffffu, is_negative(a));
    if b.y != 0u || b.x >= 64u { return vec2<u32>(fill, fill); }
    return shift_right(a, b.x, fill);
#elif OP == Equal
    return select(0u, 1u, all(a == b));
#elif OP == Less
    return select(0u, 1u, less(a, b));
#elif OP == LessOrEqual
    return select(1u, 0u, less(b, a));
#elif OP == Greater
    return select(0u, 1u, less(b, a));
#elif OP == GreaterOrEqual
    return select(1u, 0u, less(a, b));
#endif
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.units { return; }
    let at = walk_both(i);
    y[i] = f(a[at.x], b[at.y]);
}
