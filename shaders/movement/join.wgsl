// Joins up to seven tensors along one axis.
#define T: Moved4
#define COUNT = 2 3 4 5 6 7
#include "movement/parts.wgsl"

#write whole: array<T>
#read part0: array<T> if COUNT >= 2
#read part1: array<T> if COUNT >= 2
#read part2: array<T> if COUNT >= 3
#read part3: array<T> if COUNT >= 4
#read part4: array<T> if COUNT >= 5
#read part5: array<T> if COUNT >= 6
#read part6: array<T> if COUNT >= 7

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.parts.count { return; }
    let e = element(i);
    switch e.part {
        case 0u: { whole[e.far] = part0[e.near]; }
        case 1u: { whole[e.far] = part1[e.near]; }
#if COUNT >= 3
        case 2u: { whole[e.far] = part2[e.near]; }
#endif
#if COUNT >= 4
        case 3u: { whole[e.far] = part3[e.near]; }
#endif
#if COUNT >= 5
        case 4u: { whole[e.far] = part4[e.near]; }
#endif
#if COUNT >= 6
        case 5u: { whole[e.far] = part5[e.near]; }
#endif
#if COUNT >= 7
        case 6u: { whole[e.far] = part6[e.near]; }
#endif
        default: {}
    }
}
