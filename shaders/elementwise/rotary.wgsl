// Rotary embedding: the first `turned` numbers of a row turn in pairs, the others stay. Numbers of a pair stand beside each other
// (INTERLEAVED) or in two halves. A row has an angle for each pair, or for each number that turns (OF_NUMBERS).
#define INTERLEAVED: bool
#define OF_NUMBERS: bool
#include "shared/index.wgsl"
#include "shared/walk.wgsl"

// The walk is over rows, a of cosines and b of sines.
struct Params { walk: Walk, count: u32, size: u32, turned: u32, angles: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#read cosines: array<f32>
#read sines: array<f32>
#write y: array<f32>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let row = i / p.size;
    let d = i % p.size;
    if d >= p.turned {
        y[i] = x[i];
        return;
    }
#if INTERLEAVED
    let second = (d & 1u) == 1u;
    let other = select(i + 1u, i - 1u, second);
    let pair = d >> 1u;
#else
    let half = p.turned / 2u;
    let second = d >= half;
    let other = select(i + half, i - half, second);
    let pair = select(d, d - half, second);
#endif
#if OF_NUMBERS
    let angle = d;
#else
    let angle = pair;
#endif
    let at = vec2<u32>(walk_both(row)) * p.angles + angle;
    let turned = x[other] * sines[at.y];
    y[i] = x[i] * cosines[at.x] + select(-turned, turned, second);
}
