// Between f32 and floating-point types of at most 8 bits, one element a word. Both by their bits, as
// some of these numbers are subnormal in f32.
//
// NARROW: the codes of a sign are steps over the bits of the magnitude; the table holds where each
// step begins and its code, of positive numbers first. Else the table holds the f32 of every code.
#define NARROW: bool
#include "shared/index.wgsl"

struct Params { count: u32, positive: u32, negative: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<u32>
#read table: array<vec2<u32>>
#write y: array<u32>

#if NARROW
fn convert(v: u32) -> u32 {
    let magnitude = v & 0x7fffffffu;
    // The last step that begins at or below the magnitude; the first one begins at zero.
    var low = select(p.positive, 0u, v == magnitude);
    var high = select(p.positive + p.negative, p.positive, v == magnitude);
    while high - low > 1u {
        let middle = (low + high) / 2u;
        if table[middle].x <= magnitude { low = middle; } else { high = middle; }
    }
    return table[low].y;
}
#else
fn convert(v: u32) -> u32 {
    let pair = table[(v & 255u) >> 1u];
    return select(pair.x, pair.y, (v & 1u) == 1u);
}
#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i < p.count { y[i] = convert(x[i]); }
}
