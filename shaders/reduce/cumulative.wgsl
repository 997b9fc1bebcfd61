// Running sums or products along an axis; one thread a row.
#define T: Word
#define PRODUCT: bool
#include "shared/index.wgsl"

struct Params { rows: u32, size: u32, inner: u32, exclusive: u32, backward: u32, spare: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#write y: array<T>

#if T == f32
fn finish(v: T) -> T { return v; }
#else
// Wraps what is longer than an element: the bits above it go, or become its sign.
fn finish(v: T) -> T { return (v << p.spare) >> p.spare; }
#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = linear_id(id, groups);
    if row >= p.rows { return; }
    let base = (row / p.inner) * p.size * p.inner + row % p.inner;
    var sum = T(PRODUCT);
    for (var i = 0u; i < p.size; i++) {
        let at = base + select(i, p.size - 1u - i, p.backward == 1u) * p.inner;
        let v = x[at];
        if p.exclusive == 1u { y[at] = finish(sum); }
#if PRODUCT
        sum *= v;
#else
        sum += v;
#endif
        if p.exclusive == 0u { y[at] = finish(sum); }
    }
}
