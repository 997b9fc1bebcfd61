// `value` on diagonal k of a matrix, zero elsewhere.
#define T: Moved
#include "shared/index.wgsl"

struct Params { value: vec2<u32>, count: u32, columns: u32, k: i32 }

@group(0) @binding(0) var<uniform> p: Params;
#write y: array<T>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let on = i32(i % p.columns) == i32(i / p.columns) + p.k;
#if T == u32
    y[i] = select(0u, p.value.x, on);
#else
    y[i] = select(vec2<u32>(0u), p.value, on);
#endif
}
