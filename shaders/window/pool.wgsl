// Pooling with one thread an output element, any layout by strides, up to three axes. Of integers, the
// mean is rounded to the nearest, ties away from zero.
#case Float
#define T = f32
#define OP = Max Average Lp
#case Integer
#define T = i32
#define OP = Max Average
#include "shared/index.wgsl"
#include "shared/activation.wgsl"
#include "shared/window.wgsl"

struct Params {
    // Sizes of the output in the order of memory, and what each dimension is, as conv_direct.wgsl has it.
    dims: array<vec4<u32>, 2>,
    what: array<vec4<u32>, 2>,
    walk: array<vec4<u32>, 2>,
    window: Window,
    act: Activation,
    // Input with padding at both ends.
    room: vec3<u32>,
    rank: u32,
    count: u32,
    // Padding counts in the divisor of an average.
    padded: u32,
    // The power of a norm; for the maximum of integers, the smallest integer.
    power: i32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#write y: array<T>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    var at: array<u32, 5>;
    var rest = i;
    for (var d = i32(p.rank) - 1; d >= 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        at[p.what[d >> 2u][d & 3]] = rest % size;
        rest /= size;
    }
    let image = at[0] * p.walk[0].x + at[1] * p.walk[0].y;
    let begin = vec3<u32>(at[2], at[3], at[4]) * p.window.stride;
#if OP == Max && T == f32
    var sum = -infinity();
#elif OP == Max
    var sum = p.power;
#else
    var sum = T(0);
#endif
    var taps = 0u;
    for (var kz = 0u; kz < p.window.kernel.x; kz++) {
        for (var ky = 0u; ky < p.window.kernel.y; ky++) {
            for (var kx = 0u; kx < p.window.kernel.z; kx++) {
                let far = begin + vec3<u32>(kz, ky, kx) * p.window.dilation;
                let s = vec3<i32>(far) - p.window.pad;
                if any(s < vec3<i32>(0)) || any(s >= vec3<i32>(p.window.input)) {
                    if p.padded == 1u && all(far < p.room) { taps++; }
                    continue;
                }
                taps++;
                let v = x[image + u32(s.x) * p.walk[0].z + u32(s.y) * p.walk[0].w + u32(s.z) * p.walk[1].x];
#if OP == Max && T == f32
                sum = max_nan(sum, v);
#elif OP == Max
                sum = max(sum, v);
#elif OP == Average
                sum += v;
#else
                sum += power(abs(v), f32(p.power));
#endif
            }
        }
    }
#if OP == Average && T == i32
    let count = i32(max(taps, 1u));
    sum = (sum + select(-(count / 2), count / 2, sum > 0)) / count;
#elif OP == Average
    sum /= f32(max(taps, 1u));
#elif OP == Lp
    sum = power(sum, 1.0 / f32(p.power));
#endif
#if T == f32
    sum = activate(sum, p.act);
#endif
    y[i] = sum;
}
