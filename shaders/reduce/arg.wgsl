// The index of the largest (or smallest) element along an axis; `last` takes the last of equals.
// GROUP: a workgroup makes one output element, else a thread does.
#define T: Word
#define MAX: bool
#define GROUP: bool
#include "shared/indices.wgsl"
#include "shared/float.wgsl"

struct Params { outputs: u32, size: u32, inner: u32, last: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#write y: array<Index>

// Whether element i with value a wins over j with value b.
fn wins(a: T, i: u32, b: T, j: u32) -> bool {
#if T == f32
    if is_nan(a) != is_nan(b) { return is_nan(a); }
#endif
    if a != b {
#if MAX
        return a > b;
#else
        return a < b;
#endif
    }
    if p.last == 1u { return i > j; }
    return i < j;
}

fn give(output: u32, i: u32) {
#if INDEX == i64
    y[output] = Index(i, 0u);
#else
    y[output] = Index(i);
#endif
}

#if GROUP
var<workgroup> values: array<T, 64>;
var<workgroup> places: array<u32, 64>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let output = group_id(id, groups);
    let o = min(output, p.outputs - 1u);
    let base = (o / p.inner) * p.size * p.inner + o % p.inner;
    var place = min(thread, p.size - 1u);
    var value = x[base + place * p.inner];
    for (var i = thread + 64u; i < p.size; i += 64u) {
        let v = x[base + i * p.inner];
        if wins(v, i, value, place) { value = v; place = i; }
    }
    values[thread] = value;
    places[thread] = place;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half >>= 1u) {
        if thread < half && wins(values[thread + half], places[thread + half], values[thread], places[thread]) {
            values[thread] = values[thread + half];
            places[thread] = places[thread + half];
        }
        workgroupBarrier();
    }
    if thread == 0u && output < p.outputs { give(output, places[0]); }
}
#else
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let output = linear_id(id, groups);
    if output >= p.outputs { return; }
    let base = (output / p.inner) * p.size * p.inner + output % p.inner;
    var place = 0u;
    var value = x[base];
    for (var i = 1u; i < p.size; i++) {
        let v = x[base + i * p.inner];
        if wins(v, i, value, place) { value = v; place = i; }
    }
    give(output, place);
}
#endif
