// Two quantised tensors, broadcast by strides of zero, combined as numbers of T: `table` has what the
// bytes of each stand for, so that no compiler can contract their products with the sum.
#include "shared/index.wgsl"
#include "shared/quantize.wgsl"
#include "shared/walk.wgsl"

struct Params {
    dims: array<vec4<u32>, 2>,
    walk_a: array<vec4<i32>, 2>,
    walk_b: array<vec4<i32>, 2>,
    rank: u32,
    count: u32,
    zero: i32,
    // Without the zero point.
    low: i32,
    high: i32,
    // Of f32, the bits of the scale; else the multiplier.
    scale: u32,
    shift: i32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> a: array<u32>;
@group(0) @binding(2) var<storage, ACCESS_2> b: array<u32>;
@group(0) @binding(3) var<storage, ACCESS_3> table: array<T>;
@group(0) @binding(4) var<storage, ACCESS_4> y: array<i32>;

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
