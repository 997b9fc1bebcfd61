// Splits a tensor along one axis into up to seven.
#define T: Moved4
#define COUNT = 2 3 4 5 6 7
#include "movement/parts.wgsl"

#read whole: array<T>
#write part0: array<T> if COUNT >= 2
#write part1: array<T> if COUNT >= 2
#write part2: array<T> if COUNT >= 3
#write part3: array<T> if COUNT >= 4
#write part4: array<T> if COUNT >= 5
#write part5: array<T> if COUNT >= 6
#write part6: array<T> if COUNT >= 7

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.parts.count { return; }
    let e = element(i);
    switch e.part {
        case 0u: { part0[e.near] = whole[e.far]; }
        case 1u: { part1[e.near] = whole[e.far]; }
#if COUNT >= 3
        case 2u: { part2[e.near] = whole[e.far]; }
#endif
#if COUNT >= 4
        case 3u: { part3[e.near] = whole[e.far]; }
#endif
#if COUNT >= 5
        case 4u: { part4[e.near] = whole[e.far]; }
#endif
#if COUNT >= 6
        case 5u: { part5[e.near] = whole[e.far]; }
#endif
#if COUNT >= 7
        case 6u: { part6[e.near] = whole[e.far]; }
#endif
        default: {}
    }
}
