// Functions of f32 that WGSL lacks or leaves imprecise. WGSL may assume that there are no NaN and
// no infinities, so they are told by their bits.

fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn is_nan4(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn is_inf(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}

fn infinity() -> f32 {
    var bits = 0x7f800000u;
    return bitcast<f32>(bits);
}

fn not_a_number() -> f32 {
    var bits = 0x7fc00000u;
    return bitcast<f32>(bits);
}

// WGSL promises nothing of log(0) and of log of infinity.
fn natural_log(x: f32) -> f32 {
    if is_nan(x) || x < 0.0 { return not_a_number(); }
    if is_inf(x) { return x; }
    if x == 0.0 { return -infinity(); }
    return log(x);
}

// max and min that pass NaN on.
fn max_nan(a: f32, b: f32) -> f32 {
    if is_nan(a) { return a; }
    if is_nan(b) { return b; }
    return max(a, b);
}

fn min_nan(a: f32, b: f32) -> f32 {
    if is_nan(a) { return a; }
    if is_nan(b) { return b; }
    return min(a, b);
}

// Beyond 10 the result is 1 in f32; drivers overflow in between.
fn tanh_safe(x: f32) -> f32 {
    if is_nan(x) { return x; }
    return tanh(clamp(x, -10.0, 10.0));
}

fn sigmoid(x: f32) -> f32 {
    if is_nan(x) { return x; }
    return 1.0 / (1.0 + exp(-clamp(x, -88.0, 88.0)));
}

fn softplus(x: f32) -> f32 {
    return max(x, 0.0) + log1p(exp(-abs(x)));
}

// Rational approximation on -4..4, where f32 erf reaches 1 (as in Eigen).
fn erf(v: f32) -> f32 {
    let x = clamp(v, -4.0, 4.0);
    let s = x * x;
    var p = -2.72614225801306e-10;
    p = p * s + 2.77068142495902e-08;
    p = p * s + -2.10102402082508e-06;
    p = p * s + -5.69250639462346e-05;
    p = p * s + -7.34990630326855e-04;
    p = p * s + -2.95459980854025e-03;
    p = p * s + -1.60960333262415e-02;
    var q = -1.45660718464996e-05;
    q = q * s + -2.13374055278905e-04;
    q = q * s + -1.68282697438203e-03;
    q = q * s + -7.37332916720468e-03;
    q = q * s + -1.42647390514189e-02;
    return x * p / q;
}

// Sine of x + quarter * pi/2 by quadrant (polynomials as in Cephes), exact to f32 for |x| < 8192.
fn sine(x: f32, quarter: i32) -> f32 {
    let n = round(x * 0.636619772);
    let r = ((x - n * 1.5703125) - n * 4.837512969e-4) - n * 7.549789948e-8;
    let s = r * r;
    let q = (i32(n) + quarter) & 3;
    let odd = r + r * s * (-1.6666654611e-1 + s * (8.3321608736e-3 + s * -1.9515295891e-4));
    let even = 1.0 - 0.5 * s + s * s * (4.166664568298827e-2 + s * (-1.388731625493765e-3 + s * 2.443315711809948e-5));
    let v = select(odd, even, (q & 1) == 1);
    return select(v, -v, q >= 2);
}

// log(1 + x) without loss for small x: the series of 2 artanh(x / (2 + x)).
fn log1p(x: f32) -> f32 {
    if abs(x) < 0.3 {
        let s = x / (2.0 + x);
        let q = s * s;
        return 2.0 * s * (1.0 + q * (0.33333333 + q * (0.2 + q * (0.14285714 + q * 0.11111111))));
    }
    return natural_log(1.0 + x);
}

fn expm1(x: f32) -> f32 {
    if abs(x) < 1e-2 {
        return x * (1.0 + x * (0.5 + x * (0.16666667 + x * 0.041666667)));
    }
    return exp(x) - 1.0;
}

// WGSL's pow is undefined for negative bases; small whole exponents are multiplied out.
fn power(x: f32, y: f32) -> f32 {
    if y == 0.0 || x == 1.0 { return 1.0; }
    if is_nan(x) || is_nan(y) { return not_a_number(); }
    let whole = floor(y) == y;
    if whole && abs(y) <= 16.0 {
        var n = u32(abs(y));
        var base = x;
        var r = 1.0;
        while n > 0u {
            if (n & 1u) == 1u { r *= base; }
            base *= base;
            n >>= 1u;
        }
        return select(r, 1.0 / r, y < 0.0);
    }
    if y == 0.5 { return select(sqrt(max(x, 0.0)), not_a_number(), x < 0.0); }
    if x == 0.0 { return select(0.0, infinity(), y < 0.0); }
    if x < 0.0 && !whole { return not_a_number(); }
    let r = pow(abs(x), y);
    let odd = whole && abs(y) < 16777216.0 && (i32(y) & 1) == 1;
    return select(r, -r, x < 0.0 && odd);
}

// C's fmod: every subtraction is exact.
fn remainder(x: f32, y: f32) -> f32 {
    let b = abs(y);
    if b == 0.0 || is_nan(x) || is_nan(y) || is_inf(x) { return not_a_number(); }
    if is_inf(y) { return x; }
    var a = abs(x);
    while a >= b {
        let steps = i32(bitcast<u32>(a) >> 23u) - i32(bitcast<u32>(b) >> 23u);
        let t = ldexp(b, steps);
        a -= select(t, t * 0.5, t > a);
    }
    return select(a, -a, x < 0.0);
}
