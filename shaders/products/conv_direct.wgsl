// Convolution with one thread an output element: any layout by strides, any groups, weights as they
// are in the model. S: elements in memory; sums are f32.
#define S: Stored
#define TRANSPOSED: bool
#include "shared/index.wgsl"
#include "shared/activation.wgsl"
#include "shared/window.wgsl"

struct Params {
    // Sizes of the output in the order of memory, and what each dimension is: 0 image, 1 channel,
    // 2 to 4 space.
    dims: array<vec4<u32>, 2>,
    what: array<vec4<u32>, 2>,
    // Image, channel, space: strides of the input.
    walk: array<vec4<u32>, 2>,
    window: Window,
    act: Activation,
    rank: u32,
    count: u32,
    in_channels: u32,
    out_channels: u32,
    w_out: u32,
    w_in: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<S>
#read w: array<S>
#write y: array<S>
#read bias?: array<S>
#read residual?: array<S>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    // in_channels and out_channels are those of one group.
    var at: array<u32, 5>;
    var rest = i;
    for (var d = i32(p.rank) - 1; d >= 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        at[p.what[d >> 2u][d & 3]] = rest % size;
        rest /= size;
    }
    let o = at[1];
    let group = o / p.out_channels;
    let image = at[0] * p.walk[0].x + group * p.in_channels * p.walk[0].y;
    var sum = 0.0;
#if TRANSPOSED
    let weights = group * p.in_channels * p.w_in + (o % p.out_channels) * p.w_out;
#else
    let weights = o * p.w_out;
#endif
    for (var kz = 0u; kz < p.window.kernel.x; kz++) {
        for (var ky = 0u; ky < p.window.kernel.y; ky++) {
            for (var kx = 0u; kx < p.window.kernel.z; kx++) {
                let k = vec3<u32>(kz, ky, kx);
                let out = vec3<u32>(at[2], at[3], at[4]);
#if TRANSPOSED
                let far = vec3<i32>(out) + p.window.pad - vec3<i32>(k * p.window.dilation);
                let s = far / vec3<i32>(p.window.stride);
                if any(far < vec3<i32>(0)) || any(s * vec3<i32>(p.window.stride) != far) || any(s >= vec3<i32>(p.window.input)) { continue; }
#else
                let s = vec3<i32>(out * p.window.stride + k * p.window.dilation) - p.window.pad;
                if any(s < vec3<i32>(0)) || any(s >= vec3<i32>(p.window.input)) { continue; }
#endif
                let source = image + u32(s.x) * p.walk[0].z + u32(s.y) * p.walk[0].w + u32(s.z) * p.walk[1].x;
                let tap = weights + (kz * p.window.kernel.y + ky) * p.window.kernel.z + kx;
                for (var c = 0u; c < p.in_channels; c++) {
                    sum = fma(f32(x[source + c * p.walk[0].y]), f32(w[tap + c * p.w_in]), sum);
                }
            }
        }
    }
#if HAS_BIAS
    sum += f32(bias[o]);
#endif
#if HAS_RESIDUAL
    sum += f32(residual[i]);
#endif
    y[i] = S(activate(sum, p.act));
}
