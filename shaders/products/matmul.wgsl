// c = activation(alpha * a b + bias + residual). A workgroup of W x W threads makes a tile of W*RM rows
// and W*4 columns; each thread RM rows of four columns.
//   TILED: a and b go through workgroup memory; else every thread reads them itself, which suits
//      devices that are a CPU: there a barrier costs more than reading twice.
//   A: how a is read: k4 four at once along k, 1 by strides, conv4 and conv1 the same from the windows of
//      an image (implicit im2col: row = output position, k = tap and channel).
//   B: how b is read: n4 four columns at once, k4 four at once along k, 1 by strides.
//   C4: four columns are stored at once.
//   S: elements in memory; products and sums are f32.
#include "shared/activation.wgsl"
#include "shared/walk.wgsl"

struct Params {
    dims: array<vec4<u32>, 2>,
    walk_a: array<vec4<i32>, 2>,
    walk_b: array<vec4<i32>, 2>,
    rank: u32,
    m: u32,
    n: u32,
    k: u32,
    a_row: u32,
    a_col: u32,
    b_row: u32,
    b_col: u32,
    c_row: u32,
    c_col: u32,
    c_batch: u32,
    bias_row: u32,
    bias_col: u32,
    bias_batch: u32,
    alpha: f32,
    beta: f32,
    act: u32,
    act_a: f32,
    act_b: f32,
    // Windows.
    c_image: u32,
    positions: u32,
    out_w: u32,
    in_h: u32,
    in_w: u32,
    kernel_w: u32,
    channels: u32,
    x_image: u32,
    x_h: u32,
    x_w: u32,
    x_c: u32,
    stride_h: u32,
    stride_w: u32,
    dilation_h: u32,
    dilation_w: u32,
    pad_h: i32,
    pad_w: i32,
}

#if A == k4 || A == conv4
alias StoredA = vec4<S>;
alias UnitA = vec4<f32>;
#else
alias StoredA = S;
alias UnitA = f32;
#endif
#if B == 1
alias StoredB = S;
#else
alias StoredB = vec4<S>;
#endif
#if C4
alias StoredC = vec4<S>;
#else
alias StoredC = S;
#endif

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> a: array<StoredA>;
@group(0) @binding(2) var<storage, ACCESS_2> b: array<StoredB>;
@group(0) @binding(3) var<storage, ACCESS_3> c: array<StoredC>;
#if BIAS
@group(0) @binding(4) var<storage, ACCESS_4> bias: array<S>;
#endif
#if RESIDUAL && BIAS
@group(0) @binding(5) var<storage, ACCESS_5> residual: array<StoredC>;
#elif RESIDUAL
@group(0) @binding(4) var<storage, ACCESS_4> residual: array<StoredC>;
#endif

const TM = W * RM;
const TN = W * 4u;
const THREADS = W * W;
// Quads along k.
const QUADS = TK / 4u;
// One more than a row, so that threads that read different rows hit different banks.
const STEP = QUADS + 1u;
// Quads of a that each thread brings into the tile.
const LOADS = TM * QUADS / THREADS;

#if TILED
var<workgroup> tile_a: array<vec4<f32>, TM * STEP>;
var<workgroup> tile_b: array<vec4<f32>, TK * W>;
#endif

#include "products/matmul/read_a.wgsl"
#include "products/matmul/read_b.wgsl"
#include "products/matmul/store.wgsl"

fn add(sum: vec4<f32>, a: vec4<f32>, b: mat4x4<f32>) -> vec4<f32> {
    return fma(vec4<f32>(a.w), b[3], fma(vec4<f32>(a.z), b[2], fma(vec4<f32>(a.y), b[1], fma(vec4<f32>(a.x), b[0], sum))));
}

@compute @workgroup_size(W, W)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let m0 = group.x * TM;
    let n0 = group.y * TN;
    let base = walk_both(group.z);
    let base_a = u32(base.x);
    let base_b = u32(base.y);
    let n = n0 + local.x * 4u;
    let m = m0 + local.y * RM;
    var sum0 = vec4<f32>(0.0);
#if RM == 4
    var sum1 = vec4<f32>(0.0);
    var sum2 = vec4<f32>(0.0);
    var sum3 = vec4<f32>(0.0);
#endif
#if TILED
    // A thread always brings the same rows and the same quad of every tile.
    let quad = thread % QUADS;
    let line = thread / QUADS;
    let step = THREADS / QUADS;
    var rows: array<Row, LOADS>;
    for (var i = 0u; i < LOADS; i++) {
        rows[i] = row_of(m0 + line + i * step, base_a);
    }
    for (var k0 = 0u; k0 < p.k; k0 += TK) {
        let taps = taps_of(k0 + quad * 4u);
        for (var i = 0u; i < LOADS; i++) {
            tile_a[(line + i * step) * STEP + quad] = load_a(rows[i], taps);
        }
#if B == k4
        for (var i = thread; i < QUADS * W; i += THREADS) {
            let k = (i % QUADS) * 4u;
            let column = i / QUADS;
            let block = block_b(k0 + k, n0 + column * 4u, base_b);
            tile_b[k * W + column] = block[0];
            tile_b[(k + 1u) * W + column] = block[1];
            tile_b[(k + 2u) * W + column] = block[2];
            tile_b[(k + 3u) * W + column] = block[3];
        }
#else
        for (var i = thread; i < TK * W; i += THREADS) {
            tile_b[i] = load_b(k0 + i / W, n0 + (i % W) * 4u, base_b);
        }
#endif
        workgroupBarrier();
        for (var q = 0u; q < QUADS; q++) {
            let at = q * 4u * W + local.x;
            let block = mat4x4<f32>(tile_b[at], tile_b[at + W], tile_b[at + 2u * W], tile_b[at + 3u * W]);
            let row = local.y * RM * STEP + q;
            sum0 = add(sum0, tile_a[row], block);
#if RM == 4
            sum1 = add(sum1, tile_a[row + STEP], block);
            sum2 = add(sum2, tile_a[row + 2u * STEP], block);
            sum3 = add(sum3, tile_a[row + 3u * STEP], block);
#endif
        }
        workgroupBarrier();
    }
#elif A == 1
    // A loop over the rows: sixteen loads written out compile too slowly where this is used.
    var rows: array<Row, RM>;
    var sums: array<vec4<f32>, RM>;
    for (var i = 0u; i < RM; i++) {
        rows[i] = row_of(m + i, base_a);
    }
    for (var k = 0u; k < p.k; k += 4u) {
        let block = block_b(k, n, base_b);
        let taps = taps_of(k);
        for (var i = 0u; i < RM; i++) {
            sums[i] = add(sums[i], load_a(rows[i], taps), block);
        }
    }
#else
    let row0 = row_of(m, base_a);
#if RM == 4
    let row1 = row_of(m + 1u, base_a);
    let row2 = row_of(m + 2u, base_a);
    let row3 = row_of(m + 3u, base_a);
#endif
#if A == k4
    for (var k = 0u; k < p.k; k += 4u) {
        let block = block_b(k, n, base_b);
        let taps = taps_of(k);
        sum0 = add(sum0, load_a(row0, taps), block);
#if RM == 4
        sum1 = add(sum1, load_a(row1, taps), block);
        sum2 = add(sum2, load_a(row2, taps), block);
        sum3 = add(sum3, load_a(row3, taps), block);
#endif
    }
#else
    // Tap by tap, so that nothing is divided in the inner loop.
    let kernel_h = p.k / (p.channels * p.kernel_w);
    var k = 0u;
    for (var ky = 0u; ky < kernel_h; ky++) {
        for (var kx = 0u; kx < p.kernel_w; kx++) {
            let tap = vec2<i32>(i32(ky * p.dilation_h), i32(kx * p.dilation_w));
            let at0 = place(row0, tap);
#if RM == 4
            let at1 = place(row1, tap);
            let at2 = place(row2, tap);
            let at3 = place(row3, tap);
#endif
            for (var offset = 0u; offset < p.channels * p.x_c; offset += p.x_c * CHANNELS) {
#if A == conv4
                let block = block_b(k, n, base_b);
                sum0 = add(sum0, read_at(at0, offset), block);
#if RM == 4
                sum1 = add(sum1, read_at(at1, offset), block);
                sum2 = add(sum2, read_at(at2, offset), block);
                sum3 = add(sum3, read_at(at3, offset), block);
#endif
#else
                let line = load_b(k, n, base_b);
                sum0 = fma(vec4<f32>(read_at(at0, offset)), line, sum0);
#if RM == 4
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
#if !TILED && A == 1
#elif RM == 4
    var sums = array<vec4<f32>, 4>(sum0, sum1, sum2, sum3);
#else
    var sums = array<vec4<f32>, 1>(sum0);
#endif
    for (var i = 0u; i < RM; i++) {
        store(m + i, n, group.z, sums[i]);
    }
}
