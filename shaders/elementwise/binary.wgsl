// y = activation(f(a, b)); a and b broadcast by strides of zero. Units are elements, or four
// consecutive elements (QUADS). An operand that is splat is one element for each unit; b that is left out
// is a.
#type IntegerBinary Add Sub Mul Div Mod Fmod Max Min Equal Less LessOrEqual Greater GreaterOrEqual BitwiseAnd \
    BitwiseOr BitwiseXor ShiftLeft ShiftRight Pow
#define QUADS: bool
#define SPLAT_A: bool
#define SPLAT_B: bool
#case Float
#define T = f32
#define OP = Add Sub Mul Div Pow Mod Fmod Max Min Equal Less LessOrEqual Greater GreaterOrEqual PRelu
#case Integer
#define T = i32 u32
#define OP: IntegerBinary
#include "shared/index.wgsl"
#include "shared/activation.wgsl"
#include "shared/walk.wgsl"
#if OP == Div && T == f32
#include "shared/quantize.wgsl"
#endif

struct Params { walk: Walk, act: Activation, units: u32, spare: u32 }

#if OP == Equal || OP == Less || OP == LessOrEqual || OP == Greater || OP == GreaterOrEqual
alias R = u32;
fn finish(v: Result) -> Result { return v; }
#elif T == f32
alias R = T;
#if QUADS
fn finish(v: Result) -> Result { return activate4(v, p.act); }
#else
fn finish(v: Result) -> Result { return activate(v, p.act); }
#endif
#else
alias R = T;
// Wraps what is longer than an element: the bits above it go, or become its sign.
#if QUADS
fn finish(v: Result) -> Result { return (v << vec4<u32>(p.spare)) >> vec4<u32>(p.spare); }
#else
fn finish(v: Result) -> Result { return (v << p.spare) >> p.spare; }
#endif
#endif
#if QUADS
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
#read a: array<UnitA>
#read b?: array<UnitB>
#write y: array<Result>

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
    // WGSL allows a quotient 2.5 ULP of error. Drivers reorder what would correct it in floating point.
    return bitcast<f32>(quotient(bitcast<u32>(a), bitcast<u32>(b)));
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
#if HAS_B
    let w = b[at.y];
#else
    // By its own index: from `x - x` compilers make 0, whatever NaN and infinities would give.
    let w = a[at.y];
#endif
#if QUADS
    let s = Unit(u);
    let t = Unit(w);
    y[i] = finish(Result(f(s.x, t.x), f(s.y, t.y), f(s.z, t.z), f(s.w, t.w)));
#else
    y[i] = finish(f(u, w));
#endif
}
