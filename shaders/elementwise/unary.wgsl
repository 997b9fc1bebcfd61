// y = f(x).
// QUADS: four elements at once.
#define QUADS: bool
#case Float
#define T = f32
#define OP = Abs Neg Sign Exp Log Sqrt Reciprocal Floor Ceil Round Sin Cos Tan Asin Acos Atan Sinh Cosh \
    Tanh Asinh Acosh Atanh Erf Sigmoid Relu Softplus Softsign IsNaN IsInf LeakyRelu Elu Selu Celu \
    HardSigmoid HardSwish Mish Gelu GeluTanh ThresholdedRelu Shrink Swish Clip
#case Signed
#define T = i32
#define OP = Abs Neg Sign Relu BitwiseNot Clip Wrap
#case Unsigned
#define T = u32
#define OP = Abs Sign Not BitwiseNot Relu Clip Wrap
#include "shared/index.wgsl"
#include "shared/float.wgsl"

struct Params { units: u32, a: f32, b: f32, spare: u32 }

#if OP == IsNaN || OP == IsInf
alias R = u32;
#else
alias R = T;
#endif
#if QUADS
alias Unit = vec4<T>;
alias Result = vec4<R>;
#else
alias Unit = T;
alias Result = R;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<Unit>
#write y: array<Result>

fn f(x: T) -> R {
#if T == f32
#if OP == IsNaN || OP == IsInf || OP == ThresholdedRelu || OP == Shrink
#else
    // Whatever comparisons and a driver's functions make of it.
    if is_nan(x) { return x; }
#endif
#if OP == Abs
    return abs(x);
#elif OP == Neg
    return -x;
#elif OP == Sign
    return sign(x);
#elif OP == Exp
    return exp(x);
#elif OP == Log
    return natural_log(x);
#elif OP == Sqrt
    return select(sqrt(max(x, 0.0)), not_a_number(), x < 0.0 || is_nan(x));
#elif OP == Reciprocal
    return 1.0 / x;
#elif OP == Floor
    return floor(x);
#elif OP == Ceil
    return ceil(x);
#elif OP == Round
    return round(x);
#elif OP == Sin
    return sine(x, 0);
#elif OP == Cos
    return sine(x, 1);
#elif OP == Tan
    return sine(x, 0) / sine(x, 1);
#elif OP == Asin
    return asin_precise(x);
#elif OP == Acos
    return acos_precise(x);
#elif OP == Atan
    return atan_precise(x);
#elif OP == Sinh
    let e = expm1(abs(x));
    let r = 0.5 * (e + e / (e + 1.0));
    return select(select(r, 0.5 * exp(abs(x) * 0.5) * exp(abs(x) * 0.5), abs(x) > 40.0), -select(r, 0.5 * exp(abs(x) * 0.5) * exp(abs(x) * 0.5), abs(x) > 40.0), x < 0.0);
#elif OP == Cosh
    let h = exp(abs(x) * 0.5);
    return 0.5 * h * h + 0.5 / (h * h);
#elif OP == Tanh
    let e = expm1(-2.0 * min(abs(x), 20.0));
    return select(-e / (e + 2.0), e / (e + 2.0), x < 0.0);
#elif OP == Asinh
    let m = abs(x);
    let r = select(log1p(m + m * m / (1.0 + sqrt(1.0 + m * m))), log(m) + 0.69314718, m > 1e9);
    return select(r, -r, x < 0.0);
#elif OP == Acosh
    let r = select(log1p((x - 1.0) + sqrt(max((x - 1.0) * (x + 1.0), 0.0))), log(x) + 0.69314718, x > 1e9);
    return select(r, not_a_number(), x < 1.0);
#elif OP == Atanh
    return 0.5 * (log1p(x) - log1p(-x));
#elif OP == Erf
    return erf(x);
#elif OP == Sigmoid
    return sigmoid(x);
#elif OP == Relu
    return max_nan(x, 0.0);
#elif OP == Softplus
    return softplus(x);
#elif OP == Softsign
    return x / (1.0 + abs(x));
#elif OP == IsNaN
    return select(0u, 1u, is_nan(x));
#elif OP == IsInf
    let negative = (bitcast<u32>(x) & 0x80000000u) != 0u;
    return select(0u, 1u, is_inf(x) && select(p.b, p.a, negative) != 0.0);
#elif OP == LeakyRelu
    return select(x, p.a * x, x < 0.0);
#elif OP == Elu
    return select(x, p.a * expm1(x), x < 0.0);
#elif OP == Selu
    return p.b * select(x, p.a * expm1(x), x <= 0.0);
#elif OP == Celu
    return max(x, 0.0) + min(0.0, p.a * expm1(x / p.a));
#elif OP == HardSigmoid
    return clamp(p.a * x + p.b, 0.0, 1.0);
#elif OP == HardSwish
    return x * clamp(x / 6.0 + 0.5, 0.0, 1.0);
#elif OP == Mish
    // tanh(log(1 + e)) written out.
    let e = exp(min(x, 20.0));
    let q = e * (e + 2.0);
    return x * (q / (q + 2.0));
#elif OP == Gelu
    return 0.5 * x * (1.0 + erf(x * 0.70710678));
#elif OP == GeluTanh
    return 0.5 * x * (1.0 + tanh_safe(0.79788456 * (x + 0.044715 * x * x * x)));
#elif OP == ThresholdedRelu
    return select(0.0, x, x > p.a);
#elif OP == Shrink
    return select(select(0.0, x - p.a, x > p.b), x + p.a, x < -p.b);
#elif OP == Swish
    return x * sigmoid(p.a * x);
#elif OP == Clip
    return min_nan(max_nan(x, p.a), p.b);
#endif
#else
#if OP == Abs
    return abs(x);
#elif OP == Neg
    return -x;
#elif OP == Sign && T == u32
    return min(x, 1u);
#elif OP == Sign
    return sign(x);
#elif OP == Relu
    return max(x, T(0));
#elif OP == Not
    return select(1u, 0u, x != 0u);
#elif OP == BitwiseNot
    return ~x;
#elif OP == Clip
    return min(max(x, bitcast<T>(p.a)), bitcast<T>(p.b));
#elif OP == Wrap
    return x;
#endif
#endif
}

#if T == f32 || OP == Not
fn finish(v: R) -> R { return v; }
#else
// Wraps what is longer than an element: the bits above it go, or become its sign.
fn finish(v: R) -> R { return (v << p.spare) >> p.spare; }
#endif

#if T == f32
// Polynomials as in Cephes.
fn atan_precise(v: f32) -> f32 {
    let m = abs(v);
    var base = 0.0;
    var x = m;
    if m > 2.414213562 {
        base = 1.570796327;
        x = -1.0 / m;
    } else if m > 0.4142135624 {
        base = 0.7853981634;
        x = (m - 1.0) / (m + 1.0);
    }
    let s = x * x;
    let r = base + (((8.05374449538e-2 * s - 1.38776856032e-1) * s + 1.99777106478e-1) * s - 3.33329491539e-1) * s * x + x;
    return select(r, -r, v < 0.0);
}

fn asin_half(x: f32) -> f32 {
    let s = x * x;
    return ((((4.2163199048e-2 * s + 2.4181311049e-2) * s + 4.5470025998e-2) * s + 7.4953002686e-2) * s + 1.6666752422e-1) * s * x + x;
}

fn asin_precise(v: f32) -> f32 {
    let m = abs(v);
    if m > 1.0 { return not_a_number(); }
    let r = select(asin_half(m), 1.570796327 - 2.0 * asin_half(sqrt(max(0.5 * (1.0 - m), 0.0))), m > 0.5);
    return select(r, -r, v < 0.0);
}

fn acos_precise(v: f32) -> f32 {
    if abs(v) > 1.0 { return not_a_number(); }
    if v > 0.5 { return 2.0 * asin_half(sqrt(max(0.5 * (1.0 - v), 0.0))); }
    return 1.570796327 - asin_precise(v);
}
#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.units { return; }
#if QUADS
    let v = x[i];
    y[i] = Result(finish(f(v.x)), finish(f(v.y)), finish(f(v.z)), finish(f(v.w)));
#else
    y[i] = finish(f(x[i]));
#endif
}
