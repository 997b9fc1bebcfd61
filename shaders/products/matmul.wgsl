// c = activation(alpha * a b + bias + residual). A workgroup of SIDE x SIDE threads makes a tile of
// SIDE*ROWS rows and SIDE*4 columns; each thread ROWS rows of four columns.
//   TILED: a and b go through workgroup memory; else every thread reads them itself, which suits
//      devices that are a CPU: there a barrier costs more than reading twice.
//   READ_A: how a is read: k4 four at once along k, strided; conv4 and conv1 the same from the windows of
//      an image (im2col, implicit: row = output position, k = tap and channel).
//   READ_B: how b is read: n4 four columns at once, k4 four at once along k, strided.
//   C4: four columns are stored at once.
//   S: elements in memory; products and sums are f32.
#define S: Stored
#define TILE = flat small large
#define TILED: bool
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

// Where the windows of an image lie.
struct Im2col {
    // Structures in uniforms begin and end at 16 bytes.
    @align(16) c_image: u32,
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

struct Params {
    walk: Walk,
    act: Activation,
    product: Product,
    im2col: Im2col,
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
#if C4
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
#include "products/matmul/store.wgsl"
#include "products/matmul/tiles.wgsl"

@compute @workgroup_size(SIDE, SIDE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    multiply(group, local, thread);
}
