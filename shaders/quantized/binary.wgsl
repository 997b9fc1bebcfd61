// Two quantised tensors, broadcast by strides of zero, combined as numbers of T: `table` has what the
// bytes of each stand for, so that no compiler can contract their products with the sum.
#case Real
#define T = f32
#define OP = Add Sub Mul Max Min
#case Fixed
#define T = i32
#define OP = Add Sub Mul
#include "shared/index.wgsl"
#include "shared/quantize.wgsl"
#include "shared/walk.wgsl"

struct Params {
    walk: Walk,
    count: u32,
    zero: i32,
    // Without the zero point.
    low: i32,
    high: i32,
    // The multiplier, or the bits of the scale where numbers are computed as f32.
    scale: u32,
    shift: i32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read a: array<u32>
#read b: array<u32>
#read table: array<T>
#write y: array<i32>

fn f(u: T, v: T) -> T {
#if OP == Add
    return u + v;
#elif OP == Sub
    return u - v;
#elif OP == Mul
    return u * v;
#elif OP == Max
    return max(u, v);
#else
    return min(u, v);
#endif
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let at = walk_both(i);
    let r = f(table[a[at.x] & 255u], table[256u + (b[at.y] & 255u)]);
#if T == f32
    let v = rounded(quotient(bitcast<u32>(r), p.scale));
#else
    let v = fixed(r, bitcast<i32>(p.scale), p.shift);
#endif
    y[i] = p.zero + clamp(v, p.low, p.high);
}
