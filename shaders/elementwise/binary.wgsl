// y = activation(f(a, b)); a and b broadcast by strides of zero. Units are elements, or four
// consecutive elements. An operand that is splat is one element for each unit.
#include "shared/index.wgsl"
#include "shared/activation.wgsl"
#include "shared/walk.wgsl"

struct Params {
    dims: array<vec4<u32>, 2>,
    walk_a: array<vec4<i32>, 2>,
    walk_b: array<vec4<i32>, 2>,
    rank: u32,
    units: u32,
    act: u32,
    act_a: f32,
    act_b: f32,
    spare: u32,
}

#if OP == Equal || OP == Less || OP == LessOrEqual || OP == Greater || OP == GreaterOrEqual
alias R = u32;
fn finish(v: Result) -> Result { return v; }
#elif T == f32
alias R = T;
#if VEC == 4
fn finish(v: Result) -> Result { return activate4(v, p.act, p.act_a, p.act_b); }
#else
fn finish(v: Result) -> Result { return activate(v, p.act, p.act_a, p.act_b); }
#endif
#else
alias R = T;
// Wraps what is longer than an element: the bits above it go, or become its sign.
#if VEC == 4
fn finish(v: Result) -> Result { return (v << vec4<u32>(p.spare)) >> vec4<u32>(p.spare); }
#else
fn finish(v: Result) -> Result { return (v << p.spare) >> p.spare; }
#endif
#endif
#if VEC == 4
alias Unit = vec4<T>;
alias Result = vec4<R>;
#else
alias Unit = T;
alias Result = R;
#endif
#if SPLAT_A
alias UnitA = T;
#else
alias UnitA = Unit;
#endif
#if SPLAT_B
alias UnitB = T;
#else
alias UnitB = Unit;
#endif

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> a: array<UnitA>;
#if SAME
@group(0) @binding(2) var<storage, ACCESS_2> y: array<Result>;
#else
@group(0) @binding(2) var<storage, ACCESS_2> b: array<UnitB>;
@group(0) @binding(3) var<storage, ACCESS_3> y: array<Result>;
#endif

#if OP == Pow && T != f32
// Wraps. A negative power truncates to 0, but for a of 1 and -1.
fn whole_power(a: T, b: T) -> T {
    var left = u32(b);
#if T == i32
    if b < 0 {
        if a == 1 || (a == -1 && (left & 1u) == 0u) { return 1; }
        return select(0, -1, a == -1);
    }
#endif
    var base = a;
    var r = T(1);
    while left > 0u {
        if (left & 1u) == 1u { r *= base; }
        base *= base;
        left >>= 1u;
    }
    return r;
}
#endif

fn f(a: T, b: T) -> R {
#if OP == Add
    return a + b;
#elif OP == Sub
    return a - b;
#elif OP == Mul
    return a * b;
#elif OP == Div && T == f32
    return a / b;
#elif OP == Div
    return select(a / b, T(0), b == T(0));
#elif OP == Equal
    return select(0u, 1u, a == b);
#elif OP == Less
    return select(0u, 1u, a < b);
#elif OP == LessOrEqual
    return select(0u, 1u, a <= b);
#elif OP == Greater
    return select(0u, 1u, a > b);
#elif OP == GreaterOrEqual
    return select(0u, 1u, a >= b);
#elif OP == Pow && T == f32
    return power(a, b);
#elif OP == Pow
    return whole_power(a, b);
#elif OP == PRelu
    return select(a, a * b, a < 0.0);
#elif OP == Max && T == f32
    return max_nan(a, b);
#elif OP == Min && T == f32
    return min_nan(a, b);
#elif OP == Max
    return max(a, b);
#elif OP == Min
    return min(a, b);
#elif OP == Fmod && T == f32
    return remainder(a, b);
#elif OP == Fmod
    return a % b;
#elif OP == Mod && T == u32
    return a % b;
#elif OP == Mod
#if T == f32
    let r = remainder(a, b);
#else
    let r = a % b;
#endif
    return select(r, r + b, r != T(0) && ((r < T(0)) != (b < T(0))));
#elif OP == BitwiseAnd
    return a & b;
#elif OP == BitwiseOr
    return a | b;
#elif OP == BitwiseXor
    return a ^ b;
#elif OP == ShiftLeft
    return select(T(0), a << (u32(b) & 31u), u32(b) < 32u);
#elif OP == ShiftRight && T == i32
    // By the width or more (a negative count is a large one): what is left is the sign.
    return a >> min(u32(b), 31u);
#elif OP == ShiftRight
    return select(T(0), a >> (u32(b) & 31u), u32(b) < 32u);
#endif
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.units { return; }
    let at = walk_both(i);
    let u = a[at.x];
#if SAME
    // By its own index: from `x - x` compilers make 0, whatever NaN and infinities would give.
    let w = a[at.y];
#else
    let w = b[at.y];
#endif
#if VEC == 4
    let s = Unit(u);
    let t = Unit(w);
    y[i] = finish(Result(f(s.x, t.x), f(s.y, t.y), f(s.z, t.z), f(s.w, t.w)));
#else
    y[i] = finish(f(u, w));
#endif
}
