// A cache with an update written over it, from a step of each batch on: y[b, o, s, i] = update[b, o, s - starts[b], i] where there is
// such a step, else cache[b, o, s, i], and zero behind the cache. CIRCULAR: behind the last step comes the first.
#define T: Moved4
#define CIRCULAR: bool
#include "shared/indices.wgsl"

struct Params {
    count: u32,
    outer: u32,
    // Steps of the cache, and of what is written.
    held: u32,
    room: u32,
    steps: u32,
    inner: u32,
    // The last step at which an update may begin.
    last: u32,
    node: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read cache: array<T>
#read update: array<T>
#read starts?: array<Index>
#write y: array<T>
#fault

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let lead = i / p.inner / p.room;
    let step = i / p.inner % p.room;
#if HAS_STARTS
    let given = index_of(starts[lead / p.outer]);
    if given < 0 || u32(given) > p.last {
        fault[0] = p.node;
        return;
    }
#else
    let given = 0;
#endif
#if CIRCULAR
    let first = u32(given) % p.room;
    // Steps from the first one on; `room` is added where the update has gone around.
    let at = select(step - first, step + p.room - first, step < first);
#else
    // Before the first step this is a large number.
    let at = step - u32(given);
#endif
    if at < p.steps {
        y[i] = update[(lead * p.steps + at) * p.inner + i % p.inner];
    } else if step < p.held {
        y[i] = cache[(lead * p.held + step) * p.inner + i % p.inner];
    } else {
        y[i] = T();
    }
}
