// Sums, or other integers, quantised again; channels are last.
#define FINISH = Fixed
#include "shared/index.wgsl"
#include "shared/requantize.wgsl"

struct Params { count: u32, channels: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<i32>
#read parameters: array<vec4<u32>>
#write y: array<i32>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i < p.count { y[i] = finish(x[i], i % p.channels); }
}
