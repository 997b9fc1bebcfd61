// Few rows: a thread makes ROWS rows of four columns over a part of k, word by word, so that it reads each word once for all
// of its rows.
const SIDE = 8u;
#if TILE == row
const ROWS = 1u;
#else
const ROWS = 4u;
#endif
const PARTS = 32u;
const LANES = 2u;
const THREADS = 64u;

var<workgroup> partial: array<vec4<f32>, THREADS * ROWS>;

// The columns at `group.x` of the rows at `group.y`.
fn multiply(group: vec3<u32>, local: vec3<u32>, thread: u32) {
    let part = thread % PARTS;
    let lane = thread / PARTS;
    let n = (group.x * LANES + lane) * 4u;
    let m = group.y * ROWS;
    var rows: array<Row, ROWS>;
    var sums: array<vec4<f32>, ROWS>;
    for (var i = 0u; i < ROWS; i++) {
        rows[i] = row_of(m + i, 0u);
    }
#if READ_B == words
    let step = 1u << p.packing.shift;
#else
    let step = 4u;
#endif
    for (var k0 = part * step; k0 < p.product.k; k0 += PARTS * step) {
        let columns = columns_of(k0, n);
        for (var k = k0; k < k0 + step; k += 4u) {
            let taps = taps_of(k);
            let block = quads_of(columns, k);
            for (var i = 0u; i < ROWS; i++) {
                sums[i] += load_a(rows[i], taps) * block;
            }
        }
    }
    for (var i = 0u; i < ROWS; i++) {
        partial[i * THREADS + thread] = sums[i];
    }
    workgroupBarrier();
    if part < ROWS {
        var sum = vec4<f32>(0.0);
        for (var i = 0u; i < PARTS; i++) {
            sum += partial[part * THREADS + lane * PARTS + i];
        }
        store(m + part, n, 0u, sum);
    }
}
