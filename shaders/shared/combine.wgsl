// Combining with an element that others may be combined with at the same time. `y` is an array of
// atomic words; the order in which sums and products are made is not fixed.
#include "shared/float.wgsl"

fn joined(a: T, b: T) -> T {
#if REDUCTION == Add
    return a + b;
#elif REDUCTION == Mul
    return a * b;
#elif REDUCTION == Max && T == f32
    return max_nan(a, b);
#elif REDUCTION == Max
    return max(a, b);
#elif T == f32
    return min_nan(a, b);
#else
    return min(a, b);
#endif
}

fn combine(at: u32, v: T) {
    var old = atomicLoad(&y[at]);
    loop {
        let r = atomicCompareExchangeWeak(&y[at], old, bitcast<u32>(joined(bitcast<T>(old), v)));
        if r.exchanged { break; }
        old = r.old_value;
    }
}
