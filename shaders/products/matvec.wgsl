// Products with few rows: c = activation(alpha * a b + bias). The threads of a workgroup share the
// sums of its columns. S: elements in memory; products and sums are f32.
//   READ_B: n4 four columns at once: 16 quads of columns, four parts of k; k4 four at once along k: four
//      columns, 16 parts of k; strided: 16 columns, four parts of k.
//   MATRIX: which matrix of b: that of the batch, or the one that is listed for the row.
#define S: Stored
#define READ_B: ReadB
#define MATRIX = batch listed
#include "shared/activation.wgsl"
#include "shared/walk.wgsl"
#include "products/product.wgsl"

struct Params {
    walk: Walk,
    act: Activation,
    product: Product,
    // Rows that are products of the same row of a.
    sharing: u32,
}

#if READ_B == strided
alias StoredB = S;
#else
alias StoredB = vec4<S>;
#endif
#if READ_B == k4
alias StoredA = vec4<S>;
#else
alias StoredA = S;
#endif
#if READ_B == n4
alias Sum = vec4<f32>;
#else
alias Sum = f32;
#endif
#if READ_B == k4
const PARTS = 16u;
#else
const PARTS = 4u;
#endif
const LANES = 64u / PARTS;

@group(0) @binding(0) var<uniform> p: Params;
#read a: array<StoredA>
#read b: array<StoredB>
#read matrices: array<i32> if MATRIX == listed
#write c: array<S>
#read bias?: array<S>

var<workgroup> partial: array<Sum, 64>;

fn store(row: u32, n: u32, batch: u32, v: f32) {
    if n >= p.product.n { return; }
    var r = p.product.alpha * v;
#if HAS_BIAS
    r += p.product.beta * f32(bias[batch * p.product.bias_batch + row * p.product.bias_row + n * p.product.bias_col]);
#endif
    c[batch * p.product.c_batch + row * p.product.c_row + n] = S(activate(r, p.act));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.y;
#if MATRIX == listed
    let batch = u32(matrices[row]);
#else
    let batch = group.z;
#endif
    let base = walk_both(batch);
    let base_a = u32(base.x) + row / p.sharing * p.product.a_row;
    let base_b = u32(base.y);
    var sum = Sum(0.0);
#if READ_B == k4
    let part = thread % PARTS;
    let lane = thread / PARTS;
    let n = group.x * LANES + lane;
    if n < p.product.n {
        let at = base_b + n * p.product.b_col;
        for (var k = part * 4u; k < p.product.k; k += PARTS * 4u) {
            sum += dot(vec4<f32>(a[(base_a + k) / 4u]), vec4<f32>(b[(at + k) / 4u]));
        }
    }
#else
    let lane = thread % LANES;
    let part = thread / LANES;
#if READ_B == n4
    let n = (group.x * LANES + lane) * 4u;
#else
    let n = group.x * LANES + lane;
#endif
    if n < p.product.n {
        for (var k = part; k < p.product.k; k += PARTS) {
#if READ_B == n4
            sum = fma(vec4<f32>(f32(a[base_a + k * p.product.a_col])), vec4<f32>(b[(base_b + k * p.product.b_row + n) / 4u]), sum);
#else
            sum = fma(f32(a[base_a + k * p.product.a_col]), f32(b[base_b + k * p.product.b_row + n * p.product.b_col]), sum);
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
#if READ_B == n4
        store(row, n, batch, sum.x);
        store(row, n + 1u, batch, sum.y);
        store(row, n + 2u, batch, sum.z);
        store(row, n + 3u, batch, sum.w);
#else
        store(row, n, batch, sum);
#endif
    }
}
