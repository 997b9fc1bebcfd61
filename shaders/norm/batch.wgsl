// Batch normalisation at inference: channel = (i / inner) % channels.
#include "shared/index.wgsl"

struct Params { count: u32, channels: u32, inner: u32, epsilon: f32 }

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> x: array<f32>;
@group(0) @binding(2) var<storage, ACCESS_2> scale: array<f32>;
@group(0) @binding(3) var<storage, ACCESS_3> bias: array<f32>;
@group(0) @binding(4) var<storage, ACCESS_4> mean: array<f32>;
@group(0) @binding(5) var<storage, ACCESS_5> variance: array<f32>;
@group(0) @binding(6) var<storage, ACCESS_6> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let c = (i / p.inner) % p.channels;
    y[i] = (x[i] - mean[c]) * (scale[c] / sqrt(variance[c] + p.epsilon)) + bias[c];
}
