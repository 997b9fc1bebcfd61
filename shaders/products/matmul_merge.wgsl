// The product of matmul.wgsl from the sums of its parts, four columns a thread.
#define S: Stored
#define C4: bool
#define HAS_FACTOR = 0
#case Matrix
#define READ_A = k4
#case Im2col
#define READ_A = conv4
#include "shared/activation.wgsl"
#include "shared/index.wgsl"
#include "products/product.wgsl"
#include "products/matmul/im2col.wgsl"
#include "products/matmul/parts.wgsl"

struct Params {
    act: Activation,
    product: Product,
    im2col: Im2col,
    parted: Parted,
    units: u32,
}

#if C4
alias StoredC = vec4<S>;
#else
alias StoredC = S;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<vec4<f32>>
#write c: array<StoredC>
#read bias?: array<S>
#read residual?: array<StoredC>

#include "products/matmul/store.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.units { return; }
    let quads = (p.product.n + 3u) / 4u;
    let n = (i % quads) * 4u;
    let m = (i / quads) % p.product.m;
    let matrix = i / (quads * p.product.m);
    var sum = vec4<f32>(0.0);
    for (var part = 0u; part < p.parted.parts; part++) {
        sum += x[quad_of_part(matrix * p.parted.parts + part, m, n)];
    }
    store(m, n, matrix, sum);
}
