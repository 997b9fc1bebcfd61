// y[outer, i, inner] = x[outer, indices[i], inner].
#include "shared/indices.wgsl"

struct Params { count: u32, picked: u32, size: u32, inner: u32, node: u32 }

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> x: array<T>;
@group(0) @binding(2) var<storage, ACCESS_2> indices: array<Index>;
@group(0) @binding(3) var<storage, ACCESS_3> y: array<T>;
@group(0) @binding(4) var<storage, ACCESS_4> fault: array<u32>;

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
