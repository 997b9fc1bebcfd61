// Einstein summation of COUNT operands, one thread an element: kept indices give the start in each
// operand, summed ones the steps from there.
#define COUNT = 1 2 3
#include "shared/index.wgsl"

struct Params {
    kept: array<vec4<u32>, 2>,
    kept_a: array<vec4<u32>, 2>,
    kept_b: array<vec4<u32>, 2>,
    kept_c: array<vec4<u32>, 2>,
    summed: array<vec4<u32>, 2>,
    summed_a: array<vec4<u32>, 2>,
    summed_b: array<vec4<u32>, 2>,
    summed_c: array<vec4<u32>, 2>,
    kept_rank: u32,
    summed_rank: u32,
    count: u32,
    steps: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#write y: array<f32>
#read a: array<f32>
#read b: array<f32> if COUNT >= 2
#read c: array<f32> if COUNT >= 3

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    var base = vec3<u32>(0u);
    var rest = i;
    for (var d = i32(p.kept_rank) - 1; d >= 0; d--) {
        let size = p.kept[d >> 2u][d & 3];
        base += (rest % size) * vec3<u32>(p.kept_a[d >> 2u][d & 3], p.kept_b[d >> 2u][d & 3], p.kept_c[d >> 2u][d & 3]);
        rest /= size;
    }
    var sum = 0.0;
    for (var step = 0u; step < p.steps; step++) {
        var at = base;
        rest = step;
        for (var d = i32(p.summed_rank) - 1; d >= 0; d--) {
            let size = p.summed[d >> 2u][d & 3];
            at += (rest % size) * vec3<u32>(p.summed_a[d >> 2u][d & 3], p.summed_b[d >> 2u][d & 3], p.summed_c[d >> 2u][d & 3]);
            rest /= size;
        }
        var term = a[at.x];
#if COUNT >= 2
        term *= b[at.y];
#endif
#if COUNT >= 3
        term *= c[at.z];
#endif
        sum += term;
    }
    y[i] = sum;
}
