// y = x as another type. Truth is one word; 64-bit integers are two. Integers of fewer than 32 bits
// are i32 or u32 with `spare` bits above them.
#type Element f32 i32 u32 bool i64 u64
#define FROM: Element
#define TO: Element
#include "shared/index.wgsl"
#include "shared/float.wgsl"
#include "shared/int64.wgsl"

struct Params { count: u32, spare: u32 }

#if FROM == bool
alias F = u32;
#elif FROM == i64 || FROM == u64
alias F = vec2<u32>;
#else
alias F = FROM;
#endif
#if TO == bool
alias G = u32;
#elif TO == i64 || TO == u64
alias G = vec2<u32>;
#else
alias G = TO;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<F>
#write y: array<G>

fn convert(v: F) -> G {
#if FROM == TO
    return v;
#elif FROM == i64 || FROM == u64
#if TO == bool
    return select(0u, 1u, (v.x | v.y) != 0u);
#elif TO == f32 && FROM == i64
    return float64(v);
#elif TO == f32
    return float_unsigned(v);
#elif TO == i64 || TO == u64
    return v;
#else
    return bitcast<G>(v.x);
#endif
#elif TO == bool && FROM == f32
    return select(0u, 1u, (bitcast<u32>(v) & 0x7fffffffu) != 0u);
#elif TO == bool
    return select(0u, 1u, v != F(0));
#elif TO == u64 && FROM == f32
    return truncate_unsigned(v);
#elif TO == i64 && FROM == f32
    return truncate64(v);
#elif TO == i64 || TO == u64
#if FROM == i32
    return widen(v);
#else
    return vec2<u32>(v, 0u);
#endif
#elif TO == f32 && FROM == i32
    return float64(widen(v));
#elif TO == f32
    return float_unsigned(vec2<u32>(v, 0u));
#elif FROM == f32
    return bitcast<G>(truncate64(v).x);
#else
    return G(v);
#endif
}

#if TO == i32 || TO == u32
// Wraps what is longer than an element: the bits above it go, or become its sign.
fn finish(v: G) -> G { return (v << p.spare) >> p.spare; }
#else
fn finish(v: G) -> G { return v; }
#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i < p.count { y[i] = finish(convert(x[i])); }
}
