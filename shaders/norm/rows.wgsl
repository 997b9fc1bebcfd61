// y = (x - mean) / deviation * scale + bias over rows; a workgroup does one row. RMS: without the
// mean. STATS: the mean and the inverse deviation of each row are outputs, too. The scale of element d of a row is (row % modulus) * factor + d / divisor.
#include "shared/index.wgsl"

struct Params {
    rows: u32,
    size: u32,
    modulus: u32,
    factor: u32,
    divisor: u32,
    epsilon: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> x: array<f32>;
@group(0) @binding(2) var<storage, ACCESS_2> y: array<f32>;
@group(0) @binding(3) var<storage, ACCESS_3> scale: array<f32>;
#if BIAS
@group(0) @binding(4) var<storage, ACCESS_4> bias: array<f32>;
#endif
#if STATS && BIAS
@group(0) @binding(5) var<storage, ACCESS_5> means: array<f32>;
@group(0) @binding(6) var<storage, ACCESS_6> inverses: array<f32>;
#elif STATS
@group(0) @binding(4) var<storage, ACCESS_4> means: array<f32>;
@group(0) @binding(5) var<storage, ACCESS_5> inverses: array<f32>;
#endif

var<workgroup> partial: array<f32, 64>;

fn total(thread: u32, v: f32) -> f32 {
    partial[thread] = v;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half >>= 1u) {
        if thread < half { partial[thread] += partial[thread + half]; }
        workgroupBarrier();
    }
    let r = partial[0];
    workgroupBarrier();
    return r;
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
    mean = total(thread, sum) / f32(p.size);
#endif
    var squares = 0.0;
    for (var d = thread; d < p.size; d += 64u) {
        let v = x[base + d] - mean;
        squares += v * v;
    }
    let inverse = 1.0 / sqrt(total(thread, squares) / f32(p.size) + p.epsilon);
    if row >= p.rows { return; }
#if STATS
    if thread == 0u {
        means[row] = mean;
        inverses[row] = inverse;
    }
#endif
    let first = (row % p.modulus) * p.factor;
    for (var d = thread; d < p.size; d += 64u) {
        let k = first + d / p.divisor;
        var v = (x[base + d] - mean) * inverse * scale[k];
#if BIAS
        v += bias[k];
#endif
        y[base + d] = v;
    }
}
