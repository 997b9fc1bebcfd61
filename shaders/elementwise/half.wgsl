// Between f32 and half precision, two elements a word and a thread.
#include "shared/index.wgsl"
#include "shared/half.wgsl"

struct Params { count: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#if NARROW
@group(0) @binding(1) var<storage, ACCESS_1> x: array<f32>;
@group(0) @binding(2) var<storage, ACCESS_2> y: array<u32>;
#else
@group(0) @binding(1) var<storage, ACCESS_1> x: array<u32>;
@group(0) @binding(2) var<storage, ACCESS_2> y: array<f32>;
#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    let first = 2u * i;
    if first >= p.count { return; }
    let pair = first + 1u < p.count;
#if NARROW
    var word = half_bits(x[first]);
    if pair { word |= half_bits(x[first + 1u]) << 16u; }
    y[i] = word;
#else
    y[first] = half_value(x[i] & 0xffffu);
    if pair { y[first + 1u] = half_value(x[i] >> 16u); }
#endif
}
