// Softmax, LogSoftmax and Hardmax along an axis of rows with a stride. GROUP: a workgroup does one
// row, else a thread does.
#include "shared/index.wgsl"
#include "shared/float.wgsl"

struct Params { rows: u32, size: u32, inner: u32, beta: f32 }

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> x: array<f32>;
@group(0) @binding(2) var<storage, ACCESS_2> y: array<f32>;

fn base_of(row: u32) -> u32 {
    return (row / p.inner) * p.size * p.inner + row % p.inner;
}

fn finish(v: f32, top: f32, sum: f32) -> f32 {
#if OP == LogSoftmax
    return (v - top) - log(sum);
#else
    return exp(v - top) / sum;
#endif
}

#if GROUP
var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let row = group_id(id, groups);
    let base = base_of(min(row, p.rows - 1u));
    var top = -infinity();
    for (var i = thread; i < p.size; i += 64u) { top = max(top, p.beta * x[base + i * p.inner]); }
    partial[thread] = top;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half >>= 1u) {
        if thread < half { partial[thread] = max(partial[thread], partial[thread + half]); }
        workgroupBarrier();
    }
    top = partial[0];
    workgroupBarrier();
    var sum = 0.0;
    for (var i = thread; i < p.size; i += 64u) { sum += exp(p.beta * x[base + i * p.inner] - top); }
    partial[thread] = sum;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half >>= 1u) {
        if thread < half { partial[thread] += partial[thread + half]; }
        workgroupBarrier();
    }
    sum = partial[0];
    if row >= p.rows { return; }
    for (var i = thread; i < p.size; i += 64u) {
        let at = base + i * p.inner;
        y[at] = finish(p.beta * x[at], top, sum);
    }
}
#else
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = linear_id(id, groups);
    if row >= p.rows { return; }
    let base = base_of(row);
    var top = -infinity();
    var place = 0u;
    for (var i = 0u; i < p.size; i++) {
        let v = p.beta * x[base + i * p.inner];
        if v > top { top = v; place = i; }
    }
#if OP == Hardmax
    for (var i = 0u; i < p.size; i++) { y[base + i * p.inner] = select(0.0, 1.0, i == place); }
#else
    var sum = 0.0;
    for (var i = 0u; i < p.size; i++) { sum += exp(p.beta * x[base + i * p.inner] - top); }
    for (var i = 0u; i < p.size; i++) {
        let at = base + i * p.inner;
        y[at] = finish(p.beta * x[at], top, sum);
    }
#endif
}
#endif
