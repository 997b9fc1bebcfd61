// Elements that indices move: from x to y at the places they name (SCATTER), or from there.
#include "shared/indices.wgsl"
#if REDUCTION != None
#include "shared/combine.wgsl"
#endif

@group(0) @binding(1) var<storage, ACCESS_1> x: array<T>;
@group(0) @binding(2) var<storage, ACCESS_2> indices: array<Index>;
#if REDUCTION == None
@group(0) @binding(3) var<storage, ACCESS_3> y: array<T>;
#else
@group(0) @binding(3) var<storage, read_write> y: array<atomic<u32>>;
#endif
@group(0) @binding(4) var<storage, ACCESS_4> fault: array<u32>;

// `far` is the place that the indices name for element `i`.
fn move_element(i: u32, far: u32) {
#if REDUCTION != None
    combine(far, x[i]);
#elif SCATTER
    y[far] = x[i];
#else
    y[i] = x[far];
#endif
}
