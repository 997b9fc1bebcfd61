// ReverseSequence: the first `lengths[batch]` steps of time in reverse; batch and time are the first
// two axes, in any order.
#define T: Moved
#include "shared/indices.wgsl"

struct Params {
    count: u32,
    batch: u32,
    time: u32,
    batch_step: u32,
    time_step: u32,
    node: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#read lengths: array<Index>
#write y: array<T>
#fault

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let time = (i / p.time_step) % p.time;
    let length = index_of(lengths[(i / p.batch_step) % p.batch]);
    if length < 0 || length > i32(p.time) {
        fault[0] = p.node;
        return;
    }
    var far = i;
    if time < u32(length) { far = i - time * p.time_step + (u32(length) - 1u - time) * p.time_step; }
    y[i] = x[far];
}
