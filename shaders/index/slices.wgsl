// GatherND and ScatterND: the last dimension of the indices are coordinates of a slice of `inner`
// elements; `sizes` and `walk` are of the coordinates' dimensions of the data.
#include "shared/indices.wgsl"
#if REDUCTION != None
#include "shared/float.wgsl"
#endif

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
@group(0) @binding(1) var<storage, ACCESS_1> x: array<T>;
@group(0) @binding(2) var<storage, ACCESS_2> indices: array<Index>;
#if REDUCTION == None
@group(0) @binding(3) var<storage, ACCESS_3> y: array<T>;
#else
@group(0) @binding(3) var<storage, read_write> y: array<atomic<u32>>;
#endif
@group(0) @binding(4) var<storage, ACCESS_4> fault: array<u32>;

#if REDUCTION != None
#include "shared/combine.wgsl"
#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let slice = i / p.inner;
    var far = (slice / p.tuples) * p.batch + i % p.inner;
    for (var c = 0u; c < p.coordinates; c++) {
        var k = index_of(indices[slice * p.coordinates + c]);
        let size = i32(p.sizes[c >> 2u][c & 3u]);
        if k < 0 { k += size; }
        if k < 0 || k >= size {
            fault[0] = p.node;
            return;
        }
        far += u32(k) * p.walk[c >> 2u][c & 3u];
    }
#if REDUCTION != None
    combine(far, x[i]);
#elif SCATTER
    y[far] = x[i];
#else
    y[i] = x[far];
#endif
}
