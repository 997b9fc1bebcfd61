// Queries, keys and values in workgroup memory; zeros where there are none. Loads are not branched around but
// from a place that is always there.

// Where a quad of row k lies; the threads that write or read neighbours hit different banks.
fn place_b(k: u32, quad: u32) -> u32 {
    return k * SIDE + (quad ^ (k / 4u));
}

#if WHOLE
fn query_quad(at: u32, n: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), vec4<f32>(query[select(0u, at / 4u, n > 0u)]), n > 0u);
}

fn key_quad(at: u32, n: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), vec4<f32>(key[select(0u, at / 4u, n > 0u)]), n > 0u);
}

fn value_quad(at: u32, n: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), vec4<f32>(value[select(0u, at / 4u, n > 0u)]), n > 0u);
}
#else
fn query_one(at: u32, valid: bool) -> f32 {
    return select(0.0, f32(query[select(0u, at, valid)]), valid);
}

fn query_quad(at: u32, n: u32) -> vec4<f32> {
    return vec4<f32>(query_one(at, n > 0u), query_one(at + 1u, n > 1u), query_one(at + 2u, n > 2u), query_one(at + 3u, n > 3u));
}

fn key_one(at: u32, valid: bool) -> f32 {
    return select(0.0, f32(key[select(0u, at, valid)]), valid);
}

fn key_quad(at: u32, n: u32) -> vec4<f32> {
    return vec4<f32>(key_one(at, n > 0u), key_one(at + 1u, n > 1u), key_one(at + 2u, n > 2u), key_one(at + 3u, n > 3u));
}

fn value_one(at: u32, valid: bool) -> f32 {
    return select(0.0, f32(value[select(0u, at, valid)]), valid);
}

fn value_quad(at: u32, n: u32) -> vec4<f32> {
    return vec4<f32>(value_one(at, n > 0u), value_one(at + 1u, n > 1u), value_one(at + 2u, n > 2u), value_one(at + 3u, n > 3u));
}
#endif

// How many elements there are from `at` on in a row of `size`, none if there is no such row.
fn left(at: u32, size: u32, row: bool) -> u32 {
    return select(0u, size - at, row && at < size);
}

fn fill_queries(row0: u32, d0: u32, head: u32, thread: u32) {
    let d = d0 + (thread % SIDE) * 4u;
    for (var line = thread / SIDE; line < TM; line += SIDE) {
        let row = row0 + line;
        let at = (head * p.rows + row) * p.size + d;
        tile_a[line * STEP + thread % SIDE] = query_quad(at, left(d, p.size, row < p.rows));
    }
}

fn fill_keys(key0: u32, d0: u32, head: u32, thread: u32) {
    let quad = thread % SIDE;
    let four = thread / SIDE;
    let d = d0 + quad * 4u;
    var columns: mat4x4<f32>;
    for (var i = 0u; i < 4u; i++) {
        let k = key0 + four * 4u + i;
        let at = (head * p.keys + k) * p.size + d;
        columns[i] = key_quad(at, left(d, p.size, k < p.keys));
    }
    let block = transpose(columns);
    for (var i = 0u; i < 4u; i++) {
        tile_b[place_b(quad * 4u + i, four)] = block[i];
    }
}

// Values of the keys before `end`: what stands behind is padding, and may be anything.
fn fill_values(key0: u32, column0: u32, head: u32, end: u32, thread: u32) {
    let column = column0 + (thread % SIDE) * 4u;
    for (var line = thread / SIDE; line < KEYS; line += SIDE) {
        let k = key0 + line;
        let at = (head * p.keys + k) * p.values + column;
        tile_b[place_b(line, thread % SIDE)] = value_quad(at, left(column, p.values, k < end));
    }
}
