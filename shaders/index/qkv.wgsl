// Queries, keys and values that stand behind each other in `packed`, taken apart by heads. Of each head of queries and keys the first
// `turned` numbers turn in pairs, beside each other (INTERLEAVED) or in two halves. Keys and values are written on caches where those
// lie, from a step of each batch on.
#define INTERLEAVED: bool
#include "shared/indices.wgsl"

struct Params {
    count: u32,
    steps: u32,
    size: u32,
    turned: u32,
    query_heads: u32,
    key_heads: u32,
    // Steps of a cache.
    room: u32,
    // The last step of a cache at which what is written may begin.
    last: u32,
    // Rows of cosines and of sines between batches.
    cosine_rows: u32,
    sine_rows: u32,
    node: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read packed: array<f32>
#read cosines: array<f32>
#read sines: array<f32>
#read starts: array<Index>
#write queries: array<f32>
#write keys: array<f32>
#write values: array<f32>
#fault

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let heads = p.query_heads + 2u * p.key_heads;
    let d = i % p.size;
    let head = i / p.size % heads;
    let row = i / p.size / heads;
    let batch = row / p.steps;
    let step = row % p.steps;
    var number = packed[i];
    if head < p.query_heads + p.key_heads && d < p.turned {
        let half = p.turned / 2u;
#if INTERLEAVED
        let second = (d & 1u) == 1u;
        let other = select(i + 1u, i - 1u, second);
        let pair = d >> 1u;
#else
        let second = d >= half;
        let other = select(i + half, i - half, second);
        let pair = select(d, d - half, second);
#endif
        let turned = packed[other] * sines[(batch * p.sine_rows + step) * half + pair];
        let cosine = cosines[(batch * p.cosine_rows + step) * half + pair];
        number = number * cosine + select(-turned, turned, second);
    }
    if head < p.query_heads {
        queries[((batch * p.query_heads + head) * p.steps + step) * p.size + d] = number;
        return;
    }
    let start = index_of(starts[batch]);
    if start < 0 || u32(start) > p.last {
        fault[0] = p.node;
        return;
    }
    let cached = head - p.query_heads;
    let of_values = cached >= p.key_heads;
    let lead = batch * p.key_heads + select(cached, cached - p.key_heads, of_values);
    let at = (lead * p.room + u32(start) + step) * p.size + d;
    if of_values {
        values[at] = number;
    } else {
        keys[at] = number;
    }
}
