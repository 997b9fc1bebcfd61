// GatherElements: y[.., i, ..] = x[.., indices[.., i, ..], ..]; ScatterElements: y[.., indices, ..] = x.
// Positions are those of the indices; walk is that of the data without the axis.
#include "shared/by_indices.wgsl"

struct Params {
    dims: array<vec4<u32>, 2>,
    walk: array<vec4<u32>, 2>,
    rank: u32,
    count: u32,
    size: u32,
    stride: u32,
    node: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    var rest = i;
    var at = 0u;
    for (var d = i32(p.rank) - 1; d >= 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        at += (rest % size) * p.walk[d >> 2u][d & 3];
        rest /= size;
    }
    let k = place_of(indices[i], p.size);
    if k < 0 {
        fault[0] = p.node;
        return;
    }
    move_element(i, at + u32(k) * p.stride);
}
