// y = x, word by word.
#include "shared/index.wgsl"

struct Params { count: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<u32>
#write y: array<u32>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i < p.count { y[i] = x[i]; }
}
