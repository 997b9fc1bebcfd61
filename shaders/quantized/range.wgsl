// The scale and the zero point that DynamicQuantizeLinear takes from the range of the data. One workgroup.
#include "shared/float.wgsl"
#include "shared/quantize.wgsl"

struct Params { count: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#write scale: array<u32>
#write zero: array<i32>

var<workgroup> lows: array<f32, 256>;
var<workgroup> highs: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
    // Zero is among them; what is no number is left out.
    var least = 0.0;
    var most = 0.0;
    for (var i = thread; i < p.count; i += 256u) {
        let v = select(x[i], 0.0, is_nan(x[i]));
        least = min(least, v);
        most = max(most, v);
    }
    lows[thread] = least;
    highs[thread] = most;
    workgroupBarrier();
    for (var step = 128u; step > 0u; step >>= 1u) {
        if thread < step {
            lows[thread] = min(lows[thread], lows[thread + step]);
            highs[thread] = max(highs[thread], highs[thread + step]);
        }
        workgroupBarrier();
    }
    if thread == 0u {
        let steps = quotient(bitcast<u32>(highs[0] - lows[0]), 0x437f0000u);
        let s = select(steps, 0x3f800000u, steps == 0u);
        scale[0] = s;
        zero[0] = clamp(rounded(quotient(bitcast<u32>(-lows[0]), s)), 0, 255);
    }
}
