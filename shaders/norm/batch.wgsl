// Batch normalisation at inference: channel = (i / inner) % channels.
#include "shared/index.wgsl"

struct Params { count: u32, channels: u32, inner: u32, epsilon: f32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#read scale: array<f32>
#read bias: array<f32>
#read mean: array<f32>
#read variance: array<f32>
#write y: array<f32>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let c = (i / p.inner) % p.channels;
    y[i] = (x[i] - mean[c]) * (scale[c] / sqrt(variance[c] + p.epsilon)) + bias[c];
}
