// What becomes of a sum. FINISH: Sum nothing, Real scaled in f32 and rounded, Fixed in fixed point, Floats the bits of an f32.
// `parameters`: zero points of data and output, smallest and largest result without the latter; then for each
// channel the zero point of its weights, its bias (of Floats, an f32 that is added behind the factor) and its factor (of Fixed,
// multiplier and shift; of the others, a zero behind it).
#type Finish Sum Real Fixed Floats
#include "shared/quantize.wgsl"

fn finish(sum: i32, channel: u32) -> i32 {
    let own = parameters[channel + 1u];
#if FINISH == Floats
    // The zero is no constant to a compiler: it cannot contract the product with the sum, which would round once.
    let scaled = bitcast<u32>(nearest(sum) * bitcast<f32>(own.z)) ^ own.w;
    return bitcast<i32>(bitcast<f32>(scaled) + bitcast<f32>(own.y));
#else
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
#endif
}
