// y = min(max(x, lower), upper); bounds are buffers of one element, absent ones are x itself.
#define T: Word
#include "shared/index.wgsl"
#include "shared/float.wgsl"

struct Params { count: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#write y: array<T>
#read lower?: array<T>
#read upper?: array<T>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    var v = x[i];
#if T == f32
#if HAS_LOWER
    v = max_nan(v, lower[0]);
#endif
#if HAS_UPPER
    v = min_nan(v, upper[0]);
#endif
#else
#if HAS_LOWER
    v = max(v, lower[0]);
#endif
#if HAS_UPPER
    v = min(v, upper[0]);
#endif
#endif
    y[i] = v;
}
