// Depthwise convolution, channels last, four channels a thread; weights are [taps, channels].
// S: elements in memory; sums are f32.
#define S: Stored
#include "shared/index.wgsl"
#include "shared/activation.wgsl"

struct Params {
    act: Activation,
    units: u32,
    quads: u32,
    out_h: u32,
    out_w: u32,
    in_h: u32,
    in_w: u32,
    kernel_h: u32,
    kernel_w: u32,
    stride_h: u32,
    stride_w: u32,
    dilation_h: u32,
    dilation_w: u32,
    pad_h: i32,
    pad_w: i32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<vec4<S>>
#read w: array<vec4<S>>
#write y: array<vec4<S>>
#read bias?: array<vec4<S>>
#read residual?: array<vec4<S>>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.units { return; }
    let c = i % p.quads;
    var rest = i / p.quads;
    let ox = rest % p.out_w;
    rest /= p.out_w;
    let oy = rest % p.out_h;
    let image = rest / p.out_h;
    var sum = vec4<f32>(0.0);
    for (var ky = 0u; ky < p.kernel_h; ky++) {
        let iy = i32(oy * p.stride_h + ky * p.dilation_h) - p.pad_h;
        if iy < 0 || iy >= i32(p.in_h) { continue; }
        let row = (image * p.in_h + u32(iy)) * p.in_w;
        for (var kx = 0u; kx < p.kernel_w; kx++) {
            let ix = i32(ox * p.stride_w + kx * p.dilation_w) - p.pad_w;
            if ix < 0 || ix >= i32(p.in_w) { continue; }
            sum = fma(vec4<f32>(x[(row + u32(ix)) * p.quads + c]), vec4<f32>(w[(ky * p.kernel_w + kx) * p.quads + c]), sum);
        }
    }
#if HAS_BIAS
    sum += vec4<f32>(bias[c]);
#endif
#if HAS_RESIDUAL
    sum += vec4<f32>(residual[i]);
#endif
    y[i] = vec4<S>(activate4(sum, p.act));
}
