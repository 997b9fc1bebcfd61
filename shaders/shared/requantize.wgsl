// What becomes of a sum. FINISH: Sum nothing, Real scaled in f32, Fixed in fixed point. `parameters`:
// zero points of data and output, smallest and largest result without the latter; then for each
// channel the zero point of its weights, its bias and its factor (of Fixed, multiplier and shift).
#type Finish Sum Real Fixed
#include "shared/quantize.wgsl"

fn finish(sum: i32, channel: u32) -> i32 {
    let own = parameters[channel + 1u];
    let s = sum + bitcast<i32>(own.y);
#if FINISH == Sum
    return s;
#else
    let all = bitcast<vec4<i32>>(parameters[0]);
#if FINISH == Real
    let v = rounded(bitcast<u32>(nearest(s) * bitcast<f32>(own.z)));
#else
    let v = fixed(s, bitcast<i32>(own.z), bitcast<i32>(own.w));
#endif
    return all.y + clamp(v, all.z, all.w);
#endif
}
