// Few rows: a thread makes ROWS rows of four columns over a part of k, word by word, so that it reads each word once for all
// of its rows.
const SIDE = 8u;
#if TILE == row || TILE == expert
const ROWS = 1u;
#else
const ROWS = 4u;
#endif
const PARTS = 32u;
const LANES = 2u;
const THREADS = 64u;

var<workgroup> partial: array<vec4<f32>, THREADS * ROWS>;
#if HAS_WEIGHT
var<workgroup> squares: array<f32, THREADS>;

// Weights of four elements of a row along k.
fn weight_of(k: u32) -> vec4<f32> {
#if READ_A == k4
    return vec4<f32>(weight[min(k, p.product.k - 4u) / 4u]);
#else
    let last = p.product.k - 1u;
    return vec4<f32>(vec4<S>(weight[min(k, last)], weight[min(k + 1u, last)], weight[min(k + 2u, last)], weight[min(k + 3u, last)]));
#endif
}
#endif

// The columns at `group.x` of the rows at `group.y`.
fn multiply(group: vec3<u32>, local: vec3<u32>, thread: u32) {
    let part = thread % PARTS;
    let lane = thread / PARTS;
    let n = (group.x * LANES + lane) * 4u;
    let m = group.y * ROWS;
    var rows: array<Row, ROWS>;
    var sums: array<vec4<f32>, ROWS>;
#if HAS_WEIGHT
    var square = 0.0;
#endif
#if TILE == expert
    let expert = u32(experts[m]);
    first_column = expert * p.product.n;
    rows[0] = row_of(m / p.weights.sharing, 0u);
#else
    let expert = 0u;
    for (var i = 0u; i < ROWS; i++) {
        rows[i] = row_of(m + i, 0u);
    }
#endif
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
#if HAS_WEIGHT
            let x = load_a(rows[0], taps);
            square += dot(x, x);
            sums[0] += (x * weight_of(k)) * block;
#else
            for (var i = 0u; i < ROWS; i++) {
                sums[i] += load_a(rows[i], taps) * block;
            }
#endif
        }
    }
    for (var i = 0u; i < ROWS; i++) {
        partial[i * THREADS + thread] = sums[i];
    }
#if HAS_WEIGHT
    squares[thread] = square;
#endif
    workgroupBarrier();
    if part < ROWS {
        var sum = vec4<f32>(0.0);
        for (var i = 0u; i < PARTS; i++) {
            sum += partial[part * THREADS + lane * PARTS + i];
        }
#if HAS_WEIGHT
        var all = 0.0;
        for (var i = 0u; i < PARTS; i++) {
            all += squares[lane * PARTS + i];
        }
        sum *= 1.0 / sqrt(all / f32(p.product.k) + p.weights.epsilon);
#endif
        store(m + part, n, expert, sum);
    }
}
