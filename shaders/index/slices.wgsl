// GatherND and ScatterND: the last dimension of the indices are coordinates of a slice of `inner`
// elements; `sizes` and `walk` are of the coordinates' dimensions of the data.
#include "shared/by_indices.wgsl"

struct Params {
    sizes: array<vec4<u32>, 2>,
    walk: array<vec4<u32>, 2>,
    coordinates: u32,
    count: u32,
    inner: u32,
    // Index tuples of one batch, elements of the data of one batch.
    tuples: u32,
    batch: u32,
    node: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let slice = i / p.inner;
    var far = (slice / p.tuples) * p.batch + i % p.inner;
    for (var c = 0u; c < p.coordinates; c++) {
        let k = place_of(indices[slice * p.coordinates + c], p.sizes[c >> 2u][c & 3u]);
        if k < 0 {
            fault[0] = p.node;
            return;
        }
        far += u32(k) * p.walk[c >> 2u][c & 3u];
    }
    move_element(i, far);
}
