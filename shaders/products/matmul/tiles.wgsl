// A tile of c: a workgroup of SIDE x SIDE threads makes SIDE*ROWS rows and SIDE*4 columns, each thread ROWS rows of four
// columns.
#if TILE == large
const SIDE = 16u;
const TK = 16u;
#else
const SIDE = 8u;
const TK = 32u;
#endif
#if TILE == flat
const ROWS = 1u;
#else
const ROWS = 4u;
#endif
const TM = SIDE * ROWS;
const TN = SIDE * 4u;
const THREADS = SIDE * SIDE;
// Quads along k.
const QUADS = TK / 4u;
// One more than a row, so that threads that read different rows hit different banks.
const STEP = QUADS + 1u;
// Quads of a that each thread brings into the tile.
const LOADS = TM * QUADS / THREADS;

#if FETCH != direct
var<workgroup> tile_a: array<vec4<f32>, TM * STEP>;
var<workgroup> tile_b: array<vec4<f32>, TK * SIDE>;
#endif

fn add(sum: vec4<f32>, a: vec4<f32>, b: mat4x4<f32>) -> vec4<f32> {
    return fma(vec4<f32>(a.w), b[3], fma(vec4<f32>(a.z), b[2], fma(vec4<f32>(a.y), b[1], fma(vec4<f32>(a.x), b[0], sum))));
}

// The tile at `group`, for thread number `thread` at `local` of a workgroup.
fn multiply(group: vec3<u32>, local: vec3<u32>, thread: u32) {
    let m0 = group.x * TM;
    let n0 = group.y * TN;
#if FETCH == parts
    let base = walk_both(group.z / p.parted.parts);
    let first = (group.z % p.parted.parts) * p.parted.part;
    let end = min(first + p.parted.part, p.product.k);
#else
    let base = walk_both(group.z);
    const first = 0u;
    let end = p.product.k;
#endif
    let base_a = u32(base.x);
    let base_b = u32(base.y);
    let n = n0 + local.x * 4u;
    let m = m0 + local.y * ROWS;
    var sum0 = vec4<f32>(0.0);
#if TILE != flat
    var sum1 = vec4<f32>(0.0);
    var sum2 = vec4<f32>(0.0);
    var sum3 = vec4<f32>(0.0);
#endif
#if FETCH != direct
    // A thread always brings the same rows and the same quad of every tile.
    let quad = thread % QUADS;
    let line = thread / QUADS;
    let step = THREADS / QUADS;
    var rows: array<Row, LOADS>;
    for (var i = 0u; i < LOADS; i++) {
        rows[i] = row_of(m0 + line + i * step, base_a);
    }
    for (var k0 = first; k0 < end; k0 += TK) {
        let taps = taps_of(k0 + quad * 4u);
        for (var i = 0u; i < LOADS; i++) {
            tile_a[(line + i * step) * STEP + quad] = load_a(rows[i], taps);
        }
#if READ_B == n4 || READ_B == strided
        for (var i = thread; i < TK * SIDE; i += THREADS) {
            tile_b[i] = load_b(k0 + i / SIDE, n0 + (i % SIDE) * 4u, base_b);
        }
#else
        for (var i = thread; i < QUADS * SIDE; i += THREADS) {
            let k = (i % QUADS) * 4u;
            let column = i / QUADS;
            let block = block_b(k0 + k, n0 + column * 4u, base_b);
            tile_b[k * SIDE + column] = block[0];
            tile_b[(k + 1u) * SIDE + column] = block[1];
            tile_b[(k + 2u) * SIDE + column] = block[2];
            tile_b[(k + 3u) * SIDE + column] = block[3];
        }
#endif
        workgroupBarrier();
        for (var q = 0u; q < QUADS; q++) {
            let at = q * 4u * SIDE + local.x;
            let block = mat4x4<f32>(tile_b[at], tile_b[at + SIDE], tile_b[at + 2u * SIDE], tile_b[at + 3u * SIDE]);
            let row = local.y * ROWS * STEP + q;
            sum0 = add(sum0, tile_a[row], block);
#if TILE != flat
            sum1 = add(sum1, tile_a[row + STEP], block);
            sum2 = add(sum2, tile_a[row + 2u * STEP], block);
            sum3 = add(sum3, tile_a[row + 3u * STEP], block);
#endif
        }
        workgroupBarrier();
    }
#elif READ_A == strided
    // A loop over the rows: sixteen loads written out compile too slowly where this is used.
    var rows: array<Row, ROWS>;
    var sums: array<vec4<f32>, ROWS>;
    for (var i = 0u; i < ROWS; i++) {
        rows[i] = row_of(m + i, base_a);
    }
    for (var k = 0u; k < p.product.k; k += 4u) {
        let block = block_b(k, n, base_b);
        let taps = taps_of(k);
        for (var i = 0u; i < ROWS; i++) {
            sums[i] = add(sums[i], load_a(rows[i], taps), block);
        }
    }
#else
    let row0 = row_of(m, base_a);
#if TILE != flat
    let row1 = row_of(m + 1u, base_a);
    let row2 = row_of(m + 2u, base_a);
    let row3 = row_of(m + 3u, base_a);
#endif
#if READ_A == k4
    for (var k = 0u; k < p.product.k; k += 4u) {
        let block = block_b(k, n, base_b);
        let taps = taps_of(k);
        sum0 = add(sum0, load_a(row0, taps), block);
#if TILE != flat
        sum1 = add(sum1, load_a(row1, taps), block);
        sum2 = add(sum2, load_a(row2, taps), block);
        sum3 = add(sum3, load_a(row3, taps), block);
#endif
    }
#else
    // Tap by tap, so that nothing is divided in the inner loop.
    let kernel_h = p.product.k / (p.im2col.channels * p.im2col.kernel_w);
    var k = 0u;
    for (var ky = 0u; ky < kernel_h; ky++) {
        for (var kx = 0u; kx < p.im2col.kernel_w; kx++) {
            let tap = vec2<i32>(i32(ky * p.im2col.dilation_h), i32(kx * p.im2col.dilation_w));
            let at0 = place(row0, tap);
#if TILE != flat
            let at1 = place(row1, tap);
            let at2 = place(row2, tap);
            let at3 = place(row3, tap);
#endif
            for (var offset = 0u; offset < p.im2col.channels * p.im2col.x_c; offset += p.im2col.x_c * CHANNELS) {
#if READ_A == conv4
                let block = block_b(k, n, base_b);
                sum0 = add(sum0, read_at(at0, offset), block);
#if TILE != flat
                sum1 = add(sum1, read_at(at1, offset), block);
                sum2 = add(sum2, read_at(at2, offset), block);
                sum3 = add(sum3, read_at(at3, offset), block);
#endif
#else
                let line = load_b(k, n, base_b);
                sum0 = fma(vec4<f32>(read_at(at0, offset)), line, sum0);
#if TILE != flat
                sum1 = fma(vec4<f32>(read_at(at1, offset)), line, sum1);
                sum2 = fma(vec4<f32>(read_at(at2, offset)), line, sum2);
                sum3 = fma(vec4<f32>(read_at(at3, offset)), line, sum3);
#endif
#endif
                k += CHANNELS;
            }
        }
    }
#endif
#endif
#if FETCH == direct && READ_A == strided
#elif TILE != flat
    var sums = array<vec4<f32>, 4>(sum0, sum1, sum2, sum3);
#else
    var sums = array<vec4<f32>, 1>(sum0);
#endif
    for (var i = 0u; i < ROWS; i++) {
        store(m + i, n, group.z, sums[i]);
    }
}
