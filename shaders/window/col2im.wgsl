// Col2Im: x[plane, kernel, blocks] added up where blocks overlap, with one thread an element of the
// image; up to three axes.
#include "shared/index.wgsl"

struct Params {
    input: vec3<u32>,
    count: u32,
    kernel: vec3<u32>,
    unused0: u32,
    stride: vec3<u32>,
    unused1: u32,
    dilation: vec3<u32>,
    unused2: u32,
    pad: vec3<i32>,
    unused3: u32,
    // Blocks along each axis.
    blocks: vec3<u32>,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> x: array<f32>;
@group(0) @binding(2) var<storage, ACCESS_2> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let row = i / p.input.z;
    let sheet = row / p.input.y;
    let plane = sheet / p.input.x;
    let at = vec3<i32>(vec3<u32>(sheet % p.input.x, row % p.input.y, i % p.input.z)) + p.pad;
    let each = p.kernel.x * p.kernel.y * p.kernel.z;
    let blocks = p.blocks.x * p.blocks.y * p.blocks.z;
    var sum = 0.0;
    for (var k = 0u; k < each; k++) {
        let tap = vec3<u32>(k / p.kernel.z / p.kernel.y, (k / p.kernel.z) % p.kernel.y, k % p.kernel.z);
        let offset = at - vec3<i32>(tap * p.dilation);
        if any(offset < vec3<i32>(0)) { continue; }
        let block = vec3<u32>(offset) / p.stride;
        if any(vec3<u32>(offset) % p.stride != vec3<u32>(0u)) || any(block >= p.blocks) { continue; }
        let b = (block.x * p.blocks.y + block.y) * p.blocks.z + block.z;
        sum += x[(plane * each + k) * blocks + b];
    }
    y[i] = sum;
}
