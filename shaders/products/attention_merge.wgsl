// The result of `attention.wgsl` from those of its parts, which are the sums of a row, its largest score and its total.
#define S: Stored
#include "shared/float.wgsl"
#include "shared/index.wgsl"

struct Params { count: u32, values: u32, parts: u32, zeros: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#write y: array<S>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let size = p.values + 2u;
    let base = (i / p.values) * p.parts * size;
    var top = x[base + p.values];
    for (var part = 1u; part < p.parts; part++) { top = max(top, x[base + part * size + p.values]); }
    var sum = 0.0;
    var total = 0.0;
    for (var part = 0u; part < p.parts; part++) {
        let at = base + part * size;
        let weight = exp(x[at + p.values] - top);
        sum += weight * x[at + i % p.values];
        total += weight * x[at + p.values + 1u];
    }
    let nothing = select(not_a_number(), 0.0, p.zeros != 0u);
    y[i] = S(select(sum / total, nothing, total == 0.0));
}
