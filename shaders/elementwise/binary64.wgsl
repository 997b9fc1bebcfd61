// y = f(a, b) on 64-bit signed integers, broadcasting as in binary.wgsl.
#include "shared/index.wgsl"
#include "shared/int64.wgsl"

struct Params {
    dims: array<vec4<u32>, 2>,
    walk_a: array<vec4<i32>, 2>,
    walk_b: array<vec4<i32>, 2>,
    rank: u32,
    units: u32,
}

#if OP == Equal || OP == Less || OP == LessOrEqual || OP == Greater || OP == GreaterOrEqual
alias R = u32;
#else
alias R = vec2<u32>;
#endif

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> a: array<vec2<u32>>;
@group(0) @binding(2) var<storage, ACCESS_2> b: array<vec2<u32>>;
@group(0) @binding(3) var<storage, ACCESS_3> y: array<R>;

fn f(a: vec2<u32>, b: vec2<u32>) -> R {
#if OP == Add
    return add64(a, b);
#elif OP == Sub
    return add64(a, neg64(b));
#elif OP == Mul
    return mul64(a, b);
#elif OP == Max
    return select(a, b, less64(a, b));
#elif OP == Min
    return select(b, a, less64(a, b));
#elif OP == Equal
    return select(0u, 1u, all(a == b));
#elif OP == Less
    return select(0u, 1u, less64(a, b));
#elif OP == LessOrEqual
    return select(1u, 0u, less64(b, a));
#elif OP == Greater
    return select(0u, 1u, less64(b, a));
#elif OP == GreaterOrEqual
    return select(1u, 0u, less64(a, b));
#endif
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.units { return; }
    var rest = i;
    var at_a = 0;
    var at_b = 0;
    for (var d = i32(p.rank) - 1; d >= 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        let k = i32(rest % size);
        rest /= size;
        at_a += k * p.walk_a[d >> 2u][d & 3];
        at_b += k * p.walk_b[d >> 2u][d & 3];
    }
    y[i] = f(a[at_a], b[at_b]);
}
