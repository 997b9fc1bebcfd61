// An update written on a cache where that lies, from a step of each batch on: y[b, o, starts[b] + s, i] = update[b, o, s, i]. CIRCULAR:
// behind the last step comes the first.
#define T: Moved4
#define CIRCULAR: bool
#include "shared/indices.wgsl"

struct Params {
    count: u32,
    outer: u32,
    // Steps of the cache, and of the update.
    room: u32,
    steps: u32,
    inner: u32,
    // The last step at which an update may begin.
    last: u32,
    node: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read update: array<T>
#read starts?: array<Index>
#write y: array<T>
#fault

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let lead = i / p.inner / p.steps;
#if HAS_STARTS
    let given = index_of(starts[lead / p.outer]);
    if given < 0 || u32(given) > p.last {
        fault[0] = p.node;
        return;
    }
#else
    let given = 0;
#endif
    var step = u32(given) + i / p.inner % p.steps;
#if CIRCULAR
    step = step % p.room;
#endif
    y[(lead * p.room + step) * p.inner + i % p.inner] = update[i];
}
