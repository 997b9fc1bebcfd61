// Products with few rows: c = activation(alpha * a b + bias). The threads of a workgroup share the
// sums of its columns. S: elements in memory; products and sums are f32.
//   B: n4 four columns at once: 16 quads of columns, four parts of k; k4 four at once along k: four
//      columns, 16 parts of k; 1 by strides: 16 columns, four parts of k.
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
    c_batch: u32,
    bias_row: u32,
    bias_col: u32,
    bias_batch: u32,
    alpha: f32,
    beta: f32,
    act: u32,
    act_a: f32,
    act_b: f32,
}

#if B == 1
alias StoredB = S;
#else
alias StoredB = vec4<S>;
#endif
#if B == n4
alias Sum = vec4<f32>;
#else
alias Sum = f32;
#endif
#if B == k4
const PARTS = 16u;
#else
const PARTS = 4u;
#endif
const LANES = 64u / PARTS;

@group(0) @binding(0) var<uniform> p: Params;
#if B == k4
@group(0) @binding(1) var<storage, ACCESS_1> a: array<vec4<S>>;
#else
@group(0) @binding(1) var<storage, ACCESS_1> a: array<S>;
#endif
@group(0) @binding(2) var<storage, ACCESS_2> b: array<StoredB>;
@group(0) @binding(3) var<storage, ACCESS_3> c: array<S>;
#if BIAS
@group(0) @binding(4) var<storage, ACCESS_4> bias: array<S>;
#endif

var<workgroup> partial: array<Sum, 64>;

fn store(row: u32, n: u32, batch: u32, v: f32) {
    if n >= p.n { return; }
    var r = p.alpha * v;
#if BIAS
    r += p.beta * f32(bias[batch * p.bias_batch + row * p.bias_row + n * p.bias_col]);
#endif
    c[batch * p.c_batch + row * p.c_row + n] = S(activate(r, p.act, p.act_a, p.act_b));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let base = walk_both(group.z);
    var base_a = u32(base.x);
    let base_b = u32(base.y);
    let row = group.y;
    base_a += row * p.a_row;
    var sum = Sum(0.0);
#if B == k4
    let part = thread % PARTS;
    let lane = thread / PARTS;
    let n = group.x * LANES + lane;
    if n < p.n {
        let at = base_b + n * p.b_col;
        for (var k = part * 4u; k < p.k; k += PARTS * 4u) {
            sum += dot(vec4<f32>(a[(base_a + k) / 4u]), vec4<f32>(b[(at + k) / 4u]));
        }
    }
#else
    let lane = thread % LANES;
    let part = thread / LANES;
#if B == n4
    let n = (group.x * LANES + lane) * 4u;
#else
    let n = group.x * LANES + lane;
#endif
    if n < p.n {
        for (var k = part; k < p.k; k += PARTS) {
#if B == n4
            sum = fma(vec4<f32>(f32(a[base_a + k * p.a_col])), vec4<f32>(b[(base_b + k * p.b_row + n) / 4u]), sum);
#else
            sum = fma(f32(a[base_a + k * p.a_col]), f32(b[base_b + k * p.b_row + n * p.b_col]), sum);
#endif
        }
    }
#endif
    partial[part * LANES + lane] = sum;
    workgroupBarrier();
    if part == 0u {
        for (var i = 1u; i < PARTS; i++) {
            sum += partial[i * LANES + lane];
        }
#if B == n4
        store(row, n, group.z, sum.x);
        store(row, n + 1u, group.z, sum.y);
        store(row, n + 2u, group.z, sum.z);
        store(row, n + 3u, group.z, sum.w);
#else
        store(row, n, group.z, sum);
#endif
    }
}
