// Softmax, LogSoftmax and Hardmax along an axis of rows with a stride. GROUP: a workgroup does one
// row, else a thread does.
#case Soft
#define OP = Softmax LogSoftmax
#define GROUP: bool
#case Hard
#define OP = Hardmax
#define GROUP = 0
#include "shared/index.wgsl"
#include "shared/float.wgsl"
#if GROUP
#include "shared/workgroup.wgsl"
#endif

struct Params { rows: u32, size: u32, inner: u32, beta: f32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#write y: array<f32>

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
    let base = base_of(min(row, p.rows - 1u));
    var top = -infinity();
    for (var i = thread; i < p.size; i += 64u) { top = max(top, p.beta * x[base + i * p.inner]); }
    top = collect(thread, top, true);
    var sum = 0.0;
    for (var i = thread; i < p.size; i += 64u) { sum += exp(p.beta * x[base + i * p.inner] - top); }
    sum = collect(thread, sum, false);
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
