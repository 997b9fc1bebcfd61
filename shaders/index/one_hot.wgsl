// y[outer, depth, inner] = indices[outer, inner] == depth ? on : off; values are [off, on].
#define T: Moved
#include "shared/indices.wgsl"

struct Params { count: u32, depth: u32, inner: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read indices: array<Index>
#read values: array<T>
#write y: array<T>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let inner = i % p.inner;
    let rest = i / p.inner;
    let k = place_of(indices[(rest / p.depth) * p.inner + inner], p.depth);
    y[i] = values[select(0u, 1u, k == i32(rest % p.depth))];
}
