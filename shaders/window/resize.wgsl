// Separable resampling of two axes: the data is [a, height, b, width, inner]. The table holds for
// each position of each axis TAPS pairs of index and weight, and one flag: whether it is outside.
#include "shared/index.wgsl"

struct Params {
    count: u32,
    in_h: u32,
    out_h: u32,
    between: u32,
    in_w: u32,
    out_w: u32,
    inner: u32,
    taps_h: u32,
    taps_w: u32,
    extrapolation: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#read table: array<u32>
#write y: array<f32>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let inner = i % p.inner;
    var rest = i / p.inner;
    let ox = rest % p.out_w;
    rest /= p.out_w;
    let b = rest % p.between;
    rest /= p.between;
    let oy = rest % p.out_h;
    let a = rest / p.out_h;
    let row_h = 2u * p.taps_h + 1u;
    let row_w = 2u * p.taps_w + 1u;
    let at_h = oy * row_h;
    let at_w = p.out_h * row_h + ox * row_w;
    if table[at_h] + table[at_w] != 0u {
        y[i] = p.extrapolation;
        return;
    }
    var sum = 0.0;
    for (var th = 0u; th < p.taps_h; th++) {
        let wh = bitcast<f32>(table[at_h + 2u + 2u * th]);
        let row = ((a * p.in_h + table[at_h + 1u + 2u * th]) * p.between + b) * p.in_w;
        var part = 0.0;
        for (var tw = 0u; tw < p.taps_w; tw++) {
            let ww = bitcast<f32>(table[at_w + 2u + 2u * tw]);
            part += ww * x[(row + table[at_w + 1u + 2u * tw]) * p.inner + inner];
        }
        sum += wh * part;
    }
    y[i] = sum;
}
