// What rows see, what they score, and where they go.

// Numbers of queries and keys are below it.
const FAR = 0x20000000;

struct Row {
    valid: bool,
    index: u32,
    head: u32,
    // The keys it sees.
    first: u32,
    end: u32,
    // Where its biases begin.
    bias: u32,
}

struct Sink {
    top: f32,
    weight: f32,
}

fn is_minus_infinity(x: f32) -> bool {
    return bitcast<u32>(x) == 0xff800000u;
}

// A number of 64 bits that is no further from zero than FAR.
fn near(x: vec2<u32>) -> i32 {
    let high = bitcast<i32>(x.y);
    let end = select(FAR, -FAR, high < 0);
    return clamp(select(end, low(x), high == low(x) >> 31u), -FAR, FAR);
}

// Keys of a batch that are no padding.
fn length_of(batch: u32) -> u32 {
#if HAS_LENGTHS
    return u32(clamp(near(lengths[batch]), 0, i32(p.keys)));
#else
    return p.keys;
#endif
}

// Where the keys that query 0 sees begin and end, which may be outside of those there are.
fn window_of(batch: u32) -> vec2<i32> {
    var first = p.first;
    var end = p.end;
#if HAS_OFFSET
    var at = offset[batch * p.offset_step];
    // Sums of what is further away do not fit into 64 bits.
    at.y = bitcast<u32>(clamp(bitcast<i32>(at.y), -FAR, FAR));
    first = add64(first, at);
    end = add64(end, at);
#endif
    return vec2<i32>(near(first), near(end));
}

// The first key that a part of a tile has to look at, the one behind the last, and the length.
fn keys_of(row0: u32, part: u32, head: u32) -> vec3<u32> {
    let batch = head / p.key_heads;
    let length = length_of(batch);
    let window = window_of(batch);
    let last = min(row0 + TM, p.rows) - 1u;
    // Where the rows of two heads are in a tile, all queries are.
    let one = row0 / p.queries == last / p.queries;
    let lowest = select(0u, row0 % p.queries, one);
    let highest = select(p.queries - 1u, last % p.queries, one);
    var first = u32(clamp(window.x + i32(lowest), i32(part * p.part), FAR));
#if PARTS
    // Rows look at whole blocks, which must not reach into the next part.
    first -= first % KEYS;
#endif
    let end = min(length, (part + 1u) * p.part);
    return vec3<u32>(first, u32(clamp(window.y + i32(highest), 0, i32(end))), length);
}

fn row_of(index: u32, head: u32) -> Row {
    let batch = head / p.key_heads;
    let query = index % p.queries;
    let group = p.rows / p.queries;
    let own = (head % p.key_heads) * group + index / p.queries;
    let window = window_of(batch) + vec2<i32>(i32(query));
    let length = i32(length_of(batch));
    let valid = index < p.rows;
    return Row(
        valid,
        index,
        own,
        u32(clamp(window.x, 0, length)),
        u32(clamp(window.y, 0, length)),
        select(0u, batch * p.bias_batch + own * p.bias_head + query * p.bias_query, valid),
    );
}

// A sink is a score before all others, with a weight that is multiplied by nothing. Of the parts the first has it.
fn sink_of(row: Row, part: u32) -> Sink {
#if HAS_SINKS
    let sink = f32(sinks[select(0u, row.head, row.valid)]);
    if row.valid && part == 0u && !is_minus_infinity(sink) { return Sink(sink, 1.0); }
#endif
    return Sink(LOWEST, 0.0);
}

// Scores of four keys, and 1 for those that are seen, 0 for others.
struct Scores {
    scores: vec4<f32>,
    seen: vec4<f32>,
}

// The scores of the keys from `key0` on. Who is not seen, or has a bias of minus infinity, takes no part.
fn scores_of(products: vec4<f32>, row: Row, key0: u32) -> Scores {
    let keys = vec4<u32>(key0) + vec4<u32>(0u, 1u, 2u, 3u);
    var seen = (keys >= vec4<u32>(row.first)) & (keys < vec4<u32>(row.end));
    var r = p.scale * products;
    if p.softcap > 0.0 {
        for (var i = 0u; i < 4u; i++) { r[i] = p.softcap * tanh_safe(r[i] / p.softcap); }
    }
#if HAS_BIAS
    for (var i = 0u; i < 4u; i++) {
        let added = f32(bias[select(0u, row.bias + keys[i] * p.bias_key, seen[i])]);
        let hidden = is_minus_infinity(added);
        r[i] += select(added, 0.0, hidden);
        seen[i] = seen[i] && !hidden;
    }
#endif
    return Scores(select(vec4<f32>(LOWEST), r, seen), select(vec4<f32>(0.0), vec4<f32>(1.0), seen));
}

#if PARTS
// A row of a part is its sums, its largest score and its total.
fn place_of_part(row: Row, part: u32, head: u32) -> u32 {
    return ((head * p.rows + row.index) * p.parts + part) * (p.values + 2u);
}

fn store_total(row: Row, top: f32, total: f32, part: u32, head: u32) {
    if !row.valid { return; }
    let at = place_of_part(row, part, head) + p.values;
    y[at] = top;
    y[at + 1u] = total;
}
#endif

fn store(sums: array<vec4<f32>, ROWS>, rows: array<Row, ROWS>, totals: array<f32, ROWS>, part: u32, column: u32, head: u32) {
    var own = rows;
    var all = sums;
    var total = totals;
    for (var i = 0u; i < ROWS; i++) {
        if !own[i].valid || column >= p.values { continue; }
        let n = min(4u, p.values - column);
#if PARTS
        let at = place_of_part(own[i], part, head) + column;
        for (var j = 0u; j < n; j++) { y[at + j] = all[i][j]; }
#else
        let at = (head * p.rows + own[i].index) * p.values + column;
        let nothing = select(not_a_number(), 0.0, p.zeros != 0u);
        let r = select(all[i] / total[i], vec4<f32>(nothing), total[i] == 0.0);
#if WHOLE
        y[at / 4u] = vec4<S>(r);
#else
        for (var j = 0u; j < n; j++) { y[at + j] = S(r[j]); }
#endif
#endif
    }
}
