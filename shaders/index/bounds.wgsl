// Reports an index that is none of 0 to size - 1.
#include "shared/index.wgsl"

struct Params { count: u32, size: u32, node: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read indices: array<i32>
#fault

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i < p.count && (indices[i] < 0 || indices[i] >= i32(p.size)) { fault[0] = p.node; }
}
