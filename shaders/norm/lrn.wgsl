// Local response normalisation across channels: channel = (i / inner) % channels.
#include "shared/index.wgsl"
#include "shared/float.wgsl"

struct Params { count: u32, channels: u32, inner: u32, before: u32, after: u32, alpha: f32, beta: f32, bias: f32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#write y: array<f32>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let c = (i / p.inner) % p.channels;
    let zero = i - c * p.inner;
    var sum = 0.0;
    for (var k = max(c, p.before) - p.before; k <= min(c + p.after, p.channels - 1u); k++) {
        let v = x[zero + k * p.inner];
        sum += v * v;
    }
    // alpha comes divided by the size.
    y[i] = x[i] * power(p.bias + p.alpha * sum, -p.beta);
}
