// c = activation(alpha * a b + bias + residual). A workgroup of SIDE x SIDE threads makes a tile of
// SIDE*ROWS rows and SIDE*4 columns; each thread ROWS rows of four columns.
//   FETCH: tiled a and b go through workgroup memory; direct every thread reads them itself, which suits
//      devices that are a CPU: there a barrier costs more than reading twice; parts is tiled with a part of k for each
//      workgroup, and c are the sums of the parts, which matmul_merge.wgsl adds.
//   READ_A: how a is read: k4 four at once along k, strided; conv4 and conv1 the same from the windows of
//      an image (im2col, implicit: row = output position, k = tap and channel).
//   READ_B: how b is read: n4 four columns at once, k4 four at once along k, strided.
//   C4: four columns are stored at once.
//   S: elements in memory; products and sums are f32.
#define S: Stored
#define TILE = flat small large
#define FETCH = direct tiled parts
#define C4: bool
#define HAS_FACTOR = 0
#case Matrix
#define READ_A = k4 strided
#define READ_B: ReadB
#case Im2col
#define READ_A = conv4 conv1
#define READ_B = n4
#include "shared/activation.wgsl"
#include "shared/walk.wgsl"
#include "products/product.wgsl"
#include "products/matmul/im2col.wgsl"
#include "products/matmul/parts.wgsl"

struct Params {
    walk: Walk,
    act: Activation,
    product: Product,
    im2col: Im2col,
    parted: Parted,
}

#if READ_A == k4 || READ_A == conv4
alias StoredA = vec4<S>;
alias UnitA = vec4<f32>;
#else
alias StoredA = S;
alias UnitA = f32;
#endif
#if READ_B == strided
alias StoredB = S;
#else
alias StoredB = vec4<S>;
#endif
#if FETCH == parts
alias StoredC = vec4<f32>;
#elif C4
alias StoredC = vec4<S>;
#else
alias StoredC = S;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read a: array<StoredA>
#read b: array<StoredB>
#write c: array<StoredC>
#read bias?: array<S>
#read residual?: array<StoredC>

#include "products/matmul/read_a.wgsl"
#include "products/matmul/read_b.wgsl"
#if FETCH == parts
#include "products/matmul/store_part.wgsl"
#else
#include "products/matmul/store.wgsl"
#endif
#include "products/matmul/tiles.wgsl"

@compute @workgroup_size(SIDE, SIDE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    multiply(group, local, thread);
}
