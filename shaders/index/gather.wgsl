// y[outer, i, inner] = x[outer, indices[i], inner].
#define T: Moved4
#include "shared/indices.wgsl"

struct Params { count: u32, picked: u32, size: u32, inner: u32, node: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#read indices: array<Index>
#write y: array<T>
#fault

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let inner = i % p.inner;
    let rest = i / p.inner;
    let k = place_of(indices[rest % p.picked], p.size);
    if k < 0 {
        fault[0] = p.node;
        return;
    }
    y[i] = x[((rest / p.picked) * p.size + u32(k)) * p.inner + inner];
}
