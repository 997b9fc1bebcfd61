// GatherElements: y[.., i, ..] = x[.., indices[.., i, ..], ..]; ScatterElements: y[.., indices, ..] = x.
// Positions are those of the indices; walk is that of the data without the axis.
#include "shared/indices.wgsl"
#if REDUCTION != None
#include "shared/float.wgsl"
#endif

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
    var rest = i;
    var at = 0u;
    for (var d = i32(p.rank) - 1; d >= 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        at += (rest % size) * p.walk[d >> 2u][d & 3];
        rest /= size;
    }
    var k = index_of(indices[i]);
    if k < 0 { k += i32(p.size); }
    if k < 0 || k >= i32(p.size) {
        fault[0] = p.node;
        return;
    }
    let far = at + u32(k) * p.stride;
#if REDUCTION != None
    combine(far, x[i]);
#elif SCATTER
    y[far] = x[i];
#else
    y[i] = x[far];
#endif
}
