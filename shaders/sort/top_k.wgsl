// TopK: every element counts those of its line that come before it, which is its place. Of equal
// elements the first comes first; NaN is larger than everything.
#define T = f32 i32 u32 i64 u64
#include "shared/index.wgsl"
#include "shared/float.wgsl"
#include "shared/int64.wgsl"

struct Params { count: u32, size: u32, inner: u32, k: u32, largest: u32 }

#if T == i64 || T == u64
alias Element = vec2<u32>;
#else
alias Element = T;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<Element>
#write values: array<Element>
#write places: array<vec2<u32>>

fn less(a: Element, b: Element) -> bool {
#if T == i64
    return less64(a, b);
#elif T == u64
    return less_unsigned(a, b);
#elif T == f32
    if is_nan(a) || is_nan(b) { return !is_nan(a) && is_nan(b); }
    return a < b;
#else
    return a < b;
#endif
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let inner = i % p.inner;
    let own = (i / p.inner) % p.size;
    let outer = i / p.inner / p.size;
    let base = outer * p.size * p.inner + inner;
    let v = x[i];
    var place = 0u;
    for (var j = 0u; j < p.size; j++) {
        let w = x[base + j * p.inner];
        let before = select(less(w, v), less(v, w), p.largest == 1u);
        let after = select(less(v, w), less(w, v), p.largest == 1u);
        if before || (!after && j < own) { place++; }
    }
    if place < p.k {
        let to = (outer * p.k + place) * p.inner + inner;
        values[to] = v;
        places[to] = vec2<u32>(own, 0u);
    }
}
