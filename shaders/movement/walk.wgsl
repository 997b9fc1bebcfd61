// b[b_base + at . walk.b] = a[a_base + at . walk.a] for all positions `at` in walk.dims.
#define T: Moved4
#include "shared/index.wgsl"
#include "shared/walk.wgsl"

struct Params { walk: Walk, count: u32, a_base: i32, b_base: i32 }

@group(0) @binding(0) var<uniform> p: Params;
#read a: array<T>
#write b: array<T>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let at = vec2<i32>(p.a_base, p.b_base) + walk_both(i);
    b[at.y] = a[at.x];
}
