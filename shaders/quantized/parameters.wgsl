// The parameters of a product whose scales, zero points or bias are computed; see requantize.wgsl.
#include "shared/index.wgsl"
#include "shared/quantize.wgsl"

struct Params {
    channels: u32,
    // How many there are of each.
    scales: u32,
    zeros: u32,
    biases: u32,
    // What the weights' numbers are smaller by than the model's.
    moved: i32,
    low: i32,
    high: i32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x_scale: array<f32>
#read w_scale: array<f32>
#read y_scale: array<u32>
#read x_zero: array<i32>
#read w_zero: array<i32>
#read y_zero: array<i32>
#read bias: array<i32>
#write y: array<vec4<u32>>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i > p.channels { return; }
    if i == 0u {
        let zero = y_zero[0];
        y[0] = bitcast<vec4<u32>>(vec4<i32>(x_zero[0], zero, p.low - zero, p.high - zero));
        return;
    }
    let c = i - 1u;
    let factor = quotient(bitcast<u32>(x_scale[0] * w_scale[c % p.scales]), y_scale[0]);
    y[i] = vec4<u32>(bitcast<u32>(w_zero[c % p.zeros] - p.moved), bitcast<u32>(bias[c % p.biases]), factor, 0u);
}
