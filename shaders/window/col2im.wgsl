// Col2Im: x[plane, kernel, blocks] added up where blocks overlap, with one thread an element of the
// image; up to three axes.
#include "shared/index.wgsl"
#include "shared/window.wgsl"

struct Params {
    // The windows in the image.
    window: Window,
    // Blocks along each axis.
    blocks: vec3<u32>,
    count: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#write y: array<f32>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let row = i / p.window.input.z;
    let sheet = row / p.window.input.y;
    let plane = sheet / p.window.input.x;
    let at = vec3<i32>(vec3<u32>(sheet % p.window.input.x, row % p.window.input.y, i % p.window.input.z)) + p.window.pad;
    let each = p.window.kernel.x * p.window.kernel.y * p.window.kernel.z;
    let blocks = p.blocks.x * p.blocks.y * p.blocks.z;
    var sum = 0.0;
    for (var k = 0u; k < each; k++) {
        let tap = vec3<u32>(k / p.window.kernel.z / p.window.kernel.y, (k / p.window.kernel.z) % p.window.kernel.y, k % p.window.kernel.z);
        let offset = at - vec3<i32>(tap * p.window.dilation);
        if any(offset < vec3<i32>(0)) { continue; }
        let block = vec3<u32>(offset) / p.window.stride;
        if any(vec3<u32>(offset) % p.window.stride != vec3<u32>(0u)) || any(block >= p.blocks) { continue; }
        let b = (block.x * p.blocks.y + block.y) * p.blocks.z + block.z;
        sum += x[(plane * each + k) * blocks + b];
    }
    y[i] = sum;
}
