// y = min(max(x, lower), upper); bounds are buffers of one element, absent ones are x itself.
#include "shared/index.wgsl"
#include "shared/float.wgsl"

struct Params { count: u32 }

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> x: array<T>;
@group(0) @binding(2) var<storage, ACCESS_2> y: array<T>;
#if LOWER
@group(0) @binding(3) var<storage, ACCESS_3> lower: array<T>;
#endif
#if UPPER && LOWER
@group(0) @binding(4) var<storage, ACCESS_4> upper: array<T>;
#elif UPPER
@group(0) @binding(3) var<storage, ACCESS_3> upper: array<T>;
#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    var v = x[i];
#if T == f32
#if LOWER
    v = max_nan(v, lower[0]);
#endif
#if UPPER
    v = min_nan(v, upper[0]);
#endif
#else
#if LOWER
    v = max(v, lower[0]);
#endif
#if UPPER
    v = min(v, upper[0]);
#endif
#endif
    y[i] = v;
}
