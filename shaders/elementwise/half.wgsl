// Between f32 and half precision, two elements a word and a thread.
#define FORMAT: Format
#define NARROW: bool
#include "shared/index.wgsl"
#include "shared/half.wgsl"

struct Params { count: u32 }

#if NARROW
alias From = f32;
alias To = u32;
#else
alias From = u32;
alias To = f32;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<From>
#write y: array<To>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    let first = 2u * i;
    if first >= p.count { return; }
    let pair = first + 1u < p.count;
#if NARROW
    var word = half_bits(x[first]);
    if pair { word |= half_bits(x[first + 1u]) << 16u; }
    y[i] = word;
#else
    y[first] = half_value(x[i] & 0xffffu);
    if pair { y[first + 1u] = half_value(x[i] >> 16u); }
#endif
}
