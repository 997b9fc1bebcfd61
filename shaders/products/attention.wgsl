// softmax(scale * query keyᵀ + bias) value of each head. No matrix of scores is made: blocks of keys go by,
// and what is summed so far shrinks where a larger score comes (Dao et al., FlashAttention, 2022).
// The queries of all heads that read a key head follow each other in memory; they are its rows. A workgroup
// of SIDE x SIDE threads makes SIDE*ROWS rows and PASSES*WIDE columns of the result; each thread ROWS rows of
// four keys, then of four columns in each pass.
//   WHOLE: keys and values have whole quads, which are read at once.
//   PARTS: the keys are cut among workgroups, and `attention_merge.wgsl` makes the results of what these write.
//   S: elements in memory; sums are f32.
#define S: Stored
#define TILE = flat small
#define PASSES = 2 4
#define WHOLE: bool
#define PARTS: bool
#include "shared/float.wgsl"
#include "shared/int64.wgsl"

struct Params {
    rows: u32,
    queries: u32,
    keys: u32,
    size: u32,
    values: u32,
    key_heads: u32,
    // Keys of a part, a multiple of KEYS, and how many parts there are.
    part: u32,
    parts: u32,
    // Workgroups that share the columns of a row.
    slices: u32,
    bias_batch: u32,
    bias_head: u32,
    bias_query: u32,
    bias_key: u32,
    offset_step: u32,
    zeros: u32,
    scale: f32,
    // 0: none.
    softcap: f32,
    // Query i sees the keys from i + offset + first on, up to that before i + offset + end; 64 bits each.
    first: vec2<u32>,
    end: vec2<u32>,
}

#if WHOLE
alias Unit = vec4<S>;
#else
alias Unit = S;
#endif
#if PARTS
alias Result = f32;
#else
alias Result = Unit;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read query: array<Unit>
#read key: array<Unit>
#read value: array<Unit>
#read bias?: array<S>
#read offset?: array<vec2<u32>>
#read lengths?: array<vec2<u32>>
#read sinks?: array<S>
#write y: array<Result>

const SIDE = 8u;
const THREADS = SIDE * SIDE;
// Keys of a block, elements of queries and keys that are multiplied at once, and columns of a pass.
const WIDE = SIDE * 4u;
const KEYS = WIDE;
#if TILE == flat
const ROWS = 1u;
// Sums of a thread, four for each of its rows.
alias Sums = vec4<f32>;
#else
const ROWS = 4u;
alias Sums = mat4x4<f32>;
#endif
const TM = SIDE * ROWS;
// One more than a row has quads, so that threads that read different rows hit different banks.
const STEP = SIDE + 1u;
// Scores are above it, or no numbers.
const LOWEST = -3.4028234e38;

// Rows of queries, then of what keys weigh.
var<workgroup> tile_a: array<vec4<f32>, TM * STEP>;
// Keys, transposed, then values.
var<workgroup> tile_b: array<vec4<f32>, WIDE * SIDE>;
// A number of each thread for each row.
var<workgroup> shared_rows: array<f32, TM * SIDE>;
var<workgroup> shared_keys: vec3<u32>;

#include "products/attention/read.wgsl"
#include "products/attention/rows.wgsl"

fn add_row(sum: vec4<f32>, a: vec4<f32>, b: mat4x4<f32>) -> vec4<f32> {
    return fma(vec4<f32>(a.w), b[3], fma(vec4<f32>(a.z), b[2], fma(vec4<f32>(a.y), b[1], fma(vec4<f32>(a.x), b[0], sum))));
}

// Adds the product of both tiles.
fn multiply(sums: Sums, local: vec3<u32>) -> Sums {
    var r = sums;
    for (var q = 0u; q < SIDE; q++) {
        let at = q * 4u;
        let b = mat4x4<f32>(
            tile_b[place_b(at, local.x)],
            tile_b[place_b(at + 1u, local.x)],
            tile_b[place_b(at + 2u, local.x)],
            tile_b[place_b(at + 3u, local.x)],
        );
        let row = local.y * ROWS * STEP + q;
#if TILE == flat
        r = add_row(r, tile_a[row], b);
#else
        r = mat4x4<f32>(
            add_row(r[0], tile_a[row], b),
            add_row(r[1], tile_a[row + STEP], b),
            add_row(r[2], tile_a[row + 2u * STEP], b),
            add_row(r[3], tile_a[row + 3u * STEP], b),
        );
#endif
    }
    return r;
}

// Sums so far, made smaller, and the values of a block of keys by their weights.
fn weigh(sums: Sums, shrink: array<f32, ROWS>, local: vec3<u32>) -> Sums {
#if TILE == flat
    let r = sums * shrink[0];
#else
    let r = mat4x4<f32>(sums[0] * shrink[0], sums[1] * shrink[1], sums[2] * shrink[2], sums[3] * shrink[3]);
#endif
    workgroupBarrier();
    let result = multiply(r, local);
    workgroupBarrier();
    return result;
}

// The rows of sums.
fn apart(sums: Sums) -> array<vec4<f32>, ROWS> {
#if TILE == flat
    return array<vec4<f32>, ROWS>(sums);
#else
    return array<vec4<f32>, ROWS>(sums[0], sums[1], sums[2], sums[3]);
#endif
}

@compute @workgroup_size(SIDE, SIDE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let row0 = group.x * TM;
    let part = group.y / p.slices;
    let column0 = (group.y % p.slices) * PASSES * WIDE;
    let head = group.z;
    if thread == 0u { shared_keys = keys_of(row0, part, head); }
    // What is read of a buffer is the same for all threads only to those who look at it here.
    let keys = workgroupUniformLoad(&shared_keys);

    var rows: array<Row, ROWS>;
    var tops: array<f32, ROWS>;
    var totals: array<f32, ROWS>;
    for (var i = 0u; i < ROWS; i++) {
        rows[i] = row_of(row0 + local.y * ROWS + i, head);
        let sink = sink_of(rows[i], part);
        tops[i] = sink.top;
        // The totals of the threads of a row are added up in the end.
        totals[i] = select(0.0, sink.weight, local.x == 0u);
    }
    var sums0 = Sums();
    var sums1 = Sums();
#if PASSES >= 4
    var sums2 = Sums();
    var sums3 = Sums();
#endif
    for (var key0 = keys.x; key0 < keys.y; key0 += KEYS) {
        var products = Sums();
        for (var d = 0u; d < p.size; d += WIDE) {
            fill_queries(row0, d, head, thread);
            fill_keys(key0, d, head, thread);
            workgroupBarrier();
            products = multiply(products, local);
            workgroupBarrier();
        }
        var scores = apart(products);
        var seen: array<vec4<f32>, ROWS>;
        for (var i = 0u; i < ROWS; i++) {
            let own = scores_of(scores[i], rows[i], key0 + local.x * 4u);
            let s = own.scores;
            scores[i] = s;
            seen[i] = own.seen;
            shared_rows[(local.y * ROWS + i) * SIDE + local.x] = max(max(s.x, s.y), max(s.z, s.w));
        }
        workgroupBarrier();
        var shrink: array<f32, ROWS>;
        for (var i = 0u; i < ROWS; i++) {
            let row = local.y * ROWS + i;
            var top = tops[i];
            for (var j = 0u; j < SIDE; j++) { top = max(top, shared_rows[row * SIDE + j]); }
            shrink[i] = exp(tops[i] - top);
            tops[i] = top;
            let weights = seen[i] * exp(scores[i] - top);
            totals[i] = totals[i] * shrink[i] + dot(weights, vec4<f32>(1.0));
            tile_a[row * STEP + local.x] = weights;
        }
        fill_values(key0, column0, head, keys.z, thread);
        sums0 = weigh(sums0, shrink, local);
        if column0 + WIDE < p.values {
            fill_values(key0, column0 + WIDE, head, keys.z, thread);
            sums1 = weigh(sums1, shrink, local);
        }
#if PASSES >= 4
        if column0 + 2u * WIDE < p.values {
            fill_values(key0, column0 + 2u * WIDE, head, keys.z, thread);
            sums2 = weigh(sums2, shrink, local);
        }
        if column0 + 3u * WIDE < p.values {
            fill_values(key0, column0 + 3u * WIDE, head, keys.z, thread);
            sums3 = weigh(sums3, shrink, local);
        }
#endif
    }

    for (var i = 0u; i < ROWS; i++) { shared_rows[(local.y * ROWS + i) * SIDE + local.x] = totals[i]; }
    workgroupBarrier();
    for (var i = 0u; i < ROWS; i++) {
        var total = 0.0;
        for (var j = 0u; j < SIDE; j++) { total += shared_rows[(local.y * ROWS + i) * SIDE + j]; }
        totals[i] = total;
    }
    let column = column0 + local.x * 4u;
    store(apart(sums0), rows, totals, part, column, head);
    store(apart(sums1), rows, totals, part, column + WIDE, head);
#if PASSES >= 4
    store(apart(sums2), rows, totals, part, column + 2u * WIDE, head);
    store(apart(sums3), rows, totals, part, column + 3u * WIDE, head);
#endif
#if PARTS
    if column == 0u {
        for (var i = 0u; i < ROWS; i++) { store_total(rows[i], tops[i], totals[i], part, head); }
    }
#endif
}
