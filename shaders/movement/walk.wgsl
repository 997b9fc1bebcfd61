// b[b_base + at . walk_b] = a[a_base + at . walk_a] for all positions `at` in dims.
#include "shared/index.wgsl"
#include "shared/walk.wgsl"

struct Params {
    dims: array<vec4<u32>, 2>,
    walk_a: array<vec4<i32>, 2>,
    walk_b: array<vec4<i32>, 2>,
    rank: u32,
    count: u32,
    a_base: i32,
    b_base: i32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> a: array<T>;
@group(0) @binding(2) var<storage, ACCESS_2> b: array<T>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let at = vec2<i32>(p.a_base, p.b_base) + walk_both(i);
    b[at.y] = a[at.x];
}
