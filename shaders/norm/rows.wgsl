// y = (x - mean) / deviation * scale + bias over rows; a workgroup does one row. RMS: without the
// mean. The scale of element d of a row is (row % modulus) * factor + d / divisor.
#define RMS: bool
#include "shared/index.wgsl"
#include "shared/workgroup.wgsl"

struct Params {
    rows: u32,
    size: u32,
    modulus: u32,
    factor: u32,
    divisor: u32,
    epsilon: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#write y: array<f32>
#read scale: array<f32>
#read bias?: array<f32>
#write means?: array<f32>
#write inverses?: array<f32>

alias Partial = f32;

fn join(a: f32, b: f32) -> f32 {
    return a + b;
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let row = group_id(id, groups);
    let base = min(row, p.rows - 1u) * p.size;
    var mean = 0.0;
#if !RMS
    var sum = 0.0;
    for (var d = thread; d < p.size; d += 64u) { sum += x[base + d]; }
    mean = collect(thread, sum, false) / f32(p.size);
#endif
    var squares = 0.0;
    for (var d = thread; d < p.size; d += 64u) {
        let v = x[base + d] - mean;
        squares += v * v;
    }
    let inverse = 1.0 / sqrt(collect(thread, squares, false) / f32(p.size) + p.epsilon);
    if row >= p.rows { return; }
#if HAS_MEANS
    if thread == 0u { means[row] = mean; }
#endif
#if HAS_INVERSES
    if thread == 0u { inverses[row] = inverse; }
#endif
    let first = (row % p.modulus) * p.factor;
    for (var d = thread; d < p.size; d += 64u) {
        let k = first + d / p.divisor;
        var v = (x[base + d] - mean) * inverse * scale[k];
#if HAS_BIAS
        v += bias[k];
#endif
        y[base + d] = v;
    }
}
