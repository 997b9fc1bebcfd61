// Crops, then pads by mode.
#define T: Moved
#define MODE = Constant Edge Wrap Reflect Symmetric
#include "shared/index.wgsl"

struct Params {
    // `dims` are those of the output, `sizes` those of what is left of the input.
    dims: array<vec4<u32>, 2>,
    sizes: array<vec4<u32>, 2>,
    walk: array<vec4<u32>, 2>,
    begin: array<vec4<i32>, 2>,
    rank: u32,
    count: u32,
    fill: vec2<u32>,
    // The first element that is left.
    first: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#write y: array<T>

// Always from 0 up to n.
fn wrap(i: i32, n: i32) -> i32 {
    let r = i % n;
    return select(r, r + n, r < 0);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    var rest = i;
    var at = p.first;
    var inside = true;
    for (var d = i32(p.rank) - 1; d >= 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        let n = i32(p.sizes[d >> 2u][d & 3]);
        var k = i32(rest % size) - p.begin[d >> 2u][d & 3];
        rest /= size;
#if MODE == Constant
        inside = inside && k >= 0 && k < n;
#elif MODE == Edge
        k = clamp(k, 0, n - 1);
#elif MODE == Wrap
        k = wrap(k, n);
#elif MODE == Reflect
        let period = max(2 * n - 2, 1);
        k = wrap(k, period);
        k = select(k, period - k, k >= n);
#elif MODE == Symmetric
        k = wrap(k, 2 * n);
        k = select(k, 2 * n - 1 - k, k >= n);
#endif
        at += u32(k) * p.walk[d >> 2u][d & 3];
    }
#if T == u32
    let fill = p.fill.x;
#else
    let fill = p.fill;
#endif
    if inside { y[i] = x[at]; } else { y[i] = fill; }
}
