// c = activation(alpha * a b + bias + residual) by tiles in workgroup memory. A workgroup of W x W
// threads makes a tile of W*RM rows and W*4 columns; each thread RM rows of four columns.
//   A: how a is read: k4 four at once along k, 1 by strides, conv4 and conv1 the same from the windows of
//      an image (implicit im2col: row = output position, k = tap and channel).
//   B: how b is read: n4 four columns at once, k4 four at once along k, 1 by strides.
//   C4: four columns are stored at once.
#include "shared/activation.wgsl"

struct Params {
    dims: array<vec4<u32>, 2>,
    walk_a: array<vec4<u32>, 2>,
    walk_b: array<vec4<u32>, 2>,
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
alias UnitA = vec4<f32>;
#else
alias UnitA = f32;
#endif
#if B == 1
alias UnitB = f32;
#else
alias UnitB = vec4<f32>;
#endif
#if C4
alias UnitC = vec4<f32>;
#else
alias UnitC = f32;
#endif

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, ACCESS_1> a: array<UnitA>;
@group(0) @binding(2) var<storage, ACCESS_2> b: array<UnitB>;
@group(0) @binding(3) var<storage, ACCESS_3> c: array<UnitC>;
#if BIAS
@group(0) @binding(4) var<storage, ACCESS_4> bias: array<f32>;
#endif
#if RESIDUAL && BIAS
@group(0) @binding(5) var<storage, ACCESS_5> residual: array<UnitC>;
#elif RESIDUAL
@group(0) @binding(4) var<storage, ACCESS_4> residual: array<UnitC>;
#endif

const TM = W * RM;
const TN = W * 4u;
const THREADS = W * W;
// One more than a row, so that threads that store a column hit different banks.
const STEP = TM + 1u;

var<workgroup> tile_a: array<f32, TK * STEP>;
var<workgroup> tile_b: array<vec4<f32>, TK * W>;

#if A == conv4 || A == conv1
fn load_a(m: u32, k: u32, base: u32) -> UnitA {
    if m >= p.m || k >= p.k { return UnitA(0.0); }
    let image = m / p.positions;
    let at = m % p.positions;
    let tap = k / p.channels;
    let y = i32((at / p.out_w) * p.stride_h + (tap / p.kernel_w) * p.dilation_h) - p.pad_h;
    let x = i32((at % p.out_w) * p.stride_w + (tap % p.kernel_w) * p.dilation_w) - p.pad_w;
    if y < 0 || x < 0 || y >= i32(p.in_h) || x >= i32(p.in_w) { return UnitA(0.0); }
    let i = base + image * p.x_image + u32(y) * p.x_h + u32(x) * p.x_w + (k % p.channels) * p.x_c;
#if A == conv4
    return a[i / 4u];
#else
    return a[i];
#endif
}
#else
fn load_a(m: u32, k: u32, base: u32) -> UnitA {
    if m >= p.m || k >= p.k { return UnitA(0.0); }
#if A == k4
    return a[(base + m * p.a_row + k) / 4u];
#else
    return a[base + m * p.a_row + k * p.a_col];
#endif
}
#endif

#if B == 1
fn load_b(k: u32, n: u32, base: u32) -> f32 {
    if k >= p.k || n >= p.n { return 0.0; }
    return b[base + k * p.b_row + n * p.b_col];
}
#elif B == n4
fn load_b(k: u32, n: u32, base: u32) -> vec4<f32> {
    if k >= p.k || n >= p.n { return vec4<f32>(0.0); }
    return b[(base + k * p.b_row + n) / 4u];
}
#else
fn load_b(k: u32, n: u32, base: u32) -> vec4<f32> {
    if k >= p.k || n >= p.n { return vec4<f32>(0.0); }
    return b[(base + n * p.b_col + k) / 4u];
}
#endif

fn store(m: u32, n: u32, batch: u32, v: vec4<f32>) {
    if m >= p.m || n >= p.n { return; }
#if A == conv4 || A == conv1
    let row = (m / p.positions) * p.c_image + (m % p.positions) * p.c_row;
#else
    let row = m * p.c_row;
#endif
    let at = batch * p.c_batch + row + n * p.c_col;
    var r = p.alpha * v;
#if BIAS
    let j = batch * p.bias_batch + m * p.bias_row + n * p.bias_col;
    r += p.beta * vec4<f32>(bias[j], bias[j + p.bias_col], bias[j + 2u * p.bias_col], bias[j + 3u * p.bias_col]);
#endif
#if C4
#if RESIDUAL
    r += residual[at / 4u];
#endif
    c[at / 4u] = activate4(r, p.act, p.act_a, p.act_b);
#else
    for (var j = 0u; j < min(4u, p.n - n); j++) {
        let i = at + j * p.c_col;
#if RESIDUAL
        r[j] += residual[i];
#endif
        c[i] = activate(r[j], p.act, p.act_a, p.act_b);
    }
#endif
}

@compute @workgroup_size(W, W)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let m0 = group.x * TM;
    let n0 = group.y * TN;
    var base_a = 0u;
    var base_b = 0u;
    var rest = group.z;
    for (var d = i32(p.rank) - 1; d >= 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        let at = rest % size;
        rest /= size;
        base_a += at * p.walk_a[d >> 2u][d & 3];
        base_b += at * p.walk_b[d >> 2u][d & 3];
    }
    var sums: array<vec4<f32>, RM>;
    for (var k0 = 0u; k0 < p.k; k0 += TK) {
#if A == k4 || A == conv4
        for (var i = thread; i < TM * TK / 4u; i += THREADS) {
            let row = i / (TK / 4u);
            let k = (i % (TK / 4u)) * 4u;
            let v = load_a(m0 + row, k0 + k, base_a);
            tile_a[k * STEP + row] = v.x;
            tile_a[(k + 1u) * STEP + row] = v.y;
            tile_a[(k + 2u) * STEP + row] = v.z;
            tile_a[(k + 3u) * STEP + row] = v.w;
        }
#else
        for (var i = thread; i < TM * TK; i += THREADS) {
#if ROWS_FIRST
            let row = i % TM;
            let k = i / TM;
#else
            let row = i / TK;
            let k = i % TK;
#endif
            tile_a[k * STEP + row] = load_a(m0 + row, k0 + k, base_a);
        }
#endif
#if B == k4
        for (var i = thread; i < TK / 4u * W; i += THREADS) {
            let k = (i % (TK / 4u)) * 4u;
            let n = i / (TK / 4u);
            let at = n0 + n * 4u;
            let v0 = load_b(k0 + k, at, base_b);
            let v1 = load_b(k0 + k, at + 1u, base_b);
            let v2 = load_b(k0 + k, at + 2u, base_b);
            let v3 = load_b(k0 + k, at + 3u, base_b);
            tile_b[k * W + n] = vec4<f32>(v0.x, v1.x, v2.x, v3.x);
            tile_b[(k + 1u) * W + n] = vec4<f32>(v0.y, v1.y, v2.y, v3.y);
            tile_b[(k + 2u) * W + n] = vec4<f32>(v0.z, v1.z, v2.z, v3.z);
            tile_b[(k + 3u) * W + n] = vec4<f32>(v0.w, v1.w, v2.w, v3.w);
        }
#else
        for (var i = thread; i < TK * W; i += THREADS) {
            let k = k0 + i / W;
            let n = n0 + (i % W) * 4u;
#if B == n4
            tile_b[i] = load_b(k, n, base_b);
#else
            tile_b[i] = vec4<f32>(load_b(k, n, base_b), load_b(k, n + 1u, base_b), load_b(k, n + 2u, base_b), load_b(k, n + 3u, base_b));
#endif
        }
#endif
        workgroupBarrier();
        for (var k = 0u; k < TK; k++) {
            let v = tile_b[k * W + local.x];
            let at = k * STEP + local.y * RM;
            for (var i = 0u; i < RM; i++) {
                sums[i] = fma(vec4<f32>(tile_a[at + i]), v, sums[i]);
            }
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < RM; i++) {
        store(m0 + local.y * RM + i, n0 + local.x * 4u, group.z, sums[i]);
    }
}
