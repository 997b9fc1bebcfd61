// y = c ? a : b, all three broadcast.
#define T: Moved
#include "shared/index.wgsl"

struct Params {
    dims: array<vec4<u32>, 2>,
    walk_c: array<vec4<i32>, 2>,
    walk_a: array<vec4<i32>, 2>,
    walk_b: array<vec4<i32>, 2>,
    rank: u32,
    units: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read c: array<u32>
#read a: array<T>
#read b: array<T>
#write y: array<T>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.units { return; }
    var rest = i;
    var at = vec3<i32>(0);
    for (var d = i32(p.rank) - 1; d >= 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        let k = i32(rest % size);
        rest /= size;
        at += k * vec3<i32>(p.walk_c[d >> 2u][d & 3], p.walk_a[d >> 2u][d & 3], p.walk_b[d >> 2u][d & 3]);
    }
    if c[at.x] != 0u { y[i] = a[at.y]; } else { y[i] = b[at.z]; }
}
