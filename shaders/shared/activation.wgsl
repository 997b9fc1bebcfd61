// The pointwise functions that are fused into other kernels; their numbers are `lowering/activation.rs`'s.
#include "shared/float.wgsl"

struct Activation {
    // Structures in uniforms begin and end at 16 bytes.
    @align(16) kind: u32,
    a: f32,
    b: f32,
}

// NaN passes, though max, min and clamp may drop it.
fn activate(x: f32, f: Activation) -> f32 {
    if is_nan(x) { return x; }
    switch f.kind {
        case 1u: { return max(x, 0.0); }
        case 2u: { return min(max(x, f.a), f.b); }
        case 3u: { return select(x, x * f.a, x < 0.0); }
        case 4u: { return sigmoid(x); }
        case 5u: { return tanh_safe(x); }
        case 6u: { return x * clamp(x + 3.0, 0.0, 6.0) / 6.0; }
        case 7u: { return clamp(f.a * x + f.b, 0.0, 1.0); }
        case 8u: { return x * sigmoid(x); }
        default: { return x; }
    }
}

fn sigmoid4(x: vec4<f32>) -> vec4<f32> {
    return 1.0 / (1.0 + exp(-clamp(x, vec4<f32>(-88.0), vec4<f32>(88.0))));
}

fn activate4(x: vec4<f32>, f: Activation) -> vec4<f32> {
    return select(activate_numbers(x, f), x, is_nan4(x));
}

fn activate_numbers(x: vec4<f32>, f: Activation) -> vec4<f32> {
    switch f.kind {
        case 1u: { return max(x, vec4<f32>(0.0)); }
        case 2u: { return min(max(x, vec4<f32>(f.a)), vec4<f32>(f.b)); }
        case 3u: { return select(x, x * f.a, x < vec4<f32>(0.0)); }
        case 4u: { return sigmoid4(x); }
        case 5u: { return tanh(clamp(x, vec4<f32>(-10.0), vec4<f32>(10.0))); }
        case 6u: { return x * clamp(x + 3.0, vec4<f32>(0.0), vec4<f32>(6.0)) / 6.0; }
        case 7u: { return clamp(f.a * x + f.b, vec4<f32>(0.0), vec4<f32>(1.0)); }
        case 8u: { return x * sigmoid4(x); }
        default: { return x; }
    }
}
