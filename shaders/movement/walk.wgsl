// y[y_base + at . walk_y] = x[x_base + at . walk_x] for all positions `at` in dims.
#include "shared/index.wgsl"

struct Params {
    dims: array<vec4<u32>, 2>,
    walk_x: array<vec4<i32>, 2>,
    walk_y: array<vec4<i32>, 2>,
    rank: u32,
    count: u32,
    x_base: u32,
    y_base: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> x: array<T>;
@group(0) @binding(2) var<storage, ACCESS_2> y: array<T>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    var rest = i;
    var a = i32(p.x_base);
    var b = i32(p.y_base);
    for (var d = i32(p.rank) - 1; d > 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        let k = i32(rest % size);
        rest /= size;
        a += k * p.walk_x[d >> 2u][d & 3];
        b += k * p.walk_y[d >> 2u][d & 3];
    }
    a += i32(rest) * p.walk_x[0].x;
    b += i32(rest) * p.walk_y[0].x;
    y[b] = x[a];
}
