// ReverseSequence: the first `lengths[batch]` steps of time in reverse; batch and time are the first
// two axes, in any order.
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
@group(0) @binding(1) var<storage, ACCESS_1> x: array<T>;
@group(0) @binding(2) var<storage, ACCESS_2> lengths: array<Index>;
@group(0) @binding(3) var<storage, ACCESS_3> y: array<T>;
@group(0) @binding(4) var<storage, ACCESS_4> fault: array<u32>;

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
