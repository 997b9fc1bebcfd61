// QuantizeLinear, AffineQuantize (ties away from zero) and DequantizeLinear (of T). Scales and zero
// points are for all elements, for those at one place of an axis, or for blocks along it, by steps.
#case Quantize
#define OP = QuantizeLinear AffineQuantize
#define T = u32
#case Dequantize
#define OP = DequantizeLinear
#define T = i32 f32
#include "shared/index.wgsl"
#include "shared/quantize.wgsl"

struct Params {
    count: u32,
    length: u32,
    inner: u32,
    block: u32,
    outer_step: u32,
    block_step: u32,
    inner_step: u32,
    // 0 where one zero point is for all scales.
    zero_step: u32,
    low: i32,
    high: i32,
}

#if OP == DequantizeLinear
alias Zero = T;
alias Result = f32;
#else
alias Zero = i32;
alias Result = i32;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#read scales: array<u32>
#read zeros: array<Zero>
#write y: array<Result>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let at = i / p.inner;
    let g = at / p.length * p.outer_step + at % p.length / p.block * p.block_step + i % p.inner * p.inner_step;
    let zero = zeros[g * p.zero_step];
#if OP == DequantizeLinear
    y[i] = f32(x[i] - zero) * bitcast<f32>(scales[g]);
#else
    let q = quotient(x[i], scales[g]);
#if OP == AffineQuantize
    let v = bounded(q);
    let m = i32(floor(v)) + select(0, 1, v - floor(v) >= 0.5);
    let whole = select(m, -m, q >> 31u == 1u);
#else
    let whole = rounded(q);
#endif
    y[i] = clamp(whole + zero, p.low, p.high);
#endif
}
