// Every element is `value`.
#define T: Moved
#include "shared/index.wgsl"

struct Params { value: vec2<u32>, count: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#write y: array<T>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
#if T == u32
    y[i] = p.value.x;
#else
    y[i] = p.value;
#endif
}
