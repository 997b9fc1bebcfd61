// Joins up to seven tensors along one axis, or splits into them. The whole is rows of `total`
// elements; this dispatch is about COUNT parts of each row, from `start` on, ends relative to it.
#include "shared/index.wgsl"

struct Params {
    ends: array<vec4<u32>, 2>,
    count: u32,
    width: u32,
    total: u32,
    start: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> whole: array<T>;
@group(0) @binding(2) var<storage, ACCESS_2> part0: array<T>;
@group(0) @binding(3) var<storage, ACCESS_3> part1: array<T>;
#if COUNT != 2
@group(0) @binding(4) var<storage, ACCESS_4> part2: array<T>;
#endif
#if COUNT != 2 && COUNT != 3
@group(0) @binding(5) var<storage, ACCESS_5> part3: array<T>;
#endif
#if COUNT == 5 || COUNT == 6 || COUNT == 7
@group(0) @binding(6) var<storage, ACCESS_6> part4: array<T>;
#endif
#if COUNT == 6 || COUNT == 7
@group(0) @binding(7) var<storage, ACCESS_7> part5: array<T>;
#endif
#if COUNT == 7
@group(0) @binding(8) var<storage, ACCESS_8> part6: array<T>;
#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let row = i / p.width;
    let at = i % p.width;
    let far = row * p.total + p.start + at;
    var part = 0u;
    var begin = 0u;
    loop {
        let end = p.ends[part >> 2u][part & 3u];
        if at < end { break; }
        begin = end;
        part++;
        continuing { break if part >= COUNT; }
    }
    let near = row * (p.ends[part >> 2u][part & 3u] - begin) + at - begin;
    switch part {
#if SPLIT
        case 0u: { part0[near] = whole[far]; }
        case 1u: { part1[near] = whole[far]; }
#if COUNT != 2
        case 2u: { part2[near] = whole[far]; }
#endif
#if COUNT != 2 && COUNT != 3
        case 3u: { part3[near] = whole[far]; }
#endif
#if COUNT == 5 || COUNT == 6 || COUNT == 7
        case 4u: { part4[near] = whole[far]; }
#endif
#if COUNT == 6 || COUNT == 7
        case 5u: { part5[near] = whole[far]; }
#endif
#if COUNT == 7
        case 6u: { part6[near] = whole[far]; }
#endif
#else
        case 0u: { whole[far] = part0[near]; }
        case 1u: { whole[far] = part1[near]; }
#if COUNT != 2
        case 2u: { whole[far] = part2[near]; }
#endif
#if COUNT != 2 && COUNT != 3
        case 3u: { whole[far] = part3[near]; }
#endif
#if COUNT == 5 || COUNT == 6 || COUNT == 7
        case 4u: { whole[far] = part4[near]; }
#endif
#if COUNT == 6 || COUNT == 7
        case 5u: { whole[far] = part5[near]; }
#endif
#if COUNT == 7
        case 6u: { whole[far] = part6[near]; }
#endif
#endif
        default: {}
    }
}
