// Products with packed weights: c = activation(a bᵀ + bias + residual) * factor, where a number of row n of b is (packed - zero) * scale. b is never
// written out: its numbers are widened in registers or in tiles of workgroup memory. With `weight`, which a row alone may have, a is
// divided by its root mean square and multiplied by the weight before.
//   TILE: row and few make one or four rows of four columns a thread, and share k; expert is row with the weights of the expert
//      that is listed for the row, where those of all experts lie behind each other; small and large are the tiles of products/matmul.
//   READ_B: how numbers are found: words where a row begins at a word and the numbers of a word are of one block; numbers
//      one by one; listed one by one, each in the block that is listed for its column.
//   ZEROS: none where zero is the middle, packed as the weights, or real as the scales.
//   S: floating-point elements in memory; products and sums are f32.
#define S: Stored
#define TILE = row few small large expert
#define READ_B = words numbers listed
#define ZEROS = none packed real
#define FETCH = tiled
#case Quads
#define READ_A = k4
#define C4 = 1
#case Single
#define READ_A = strided
#define C4 = 0
#include "shared/activation.wgsl"
#include "shared/packed.wgsl"
#include "shared/walk.wgsl"
#include "products/product.wgsl"

// Rows of b lie behind each other in whole blocks, those of packed zero points in whole bytes.
struct Weights {
    // Structures in uniforms begin and end at 16 bytes.
    @align(16) blocks: u32,
    block: u32,
    // Numbers of a row, and zero points.
    row: u32,
    zero_row: u32,
    // The zero point where there is no input of zero points.
    middle: f32,
    // What is added to the mean of squares.
    epsilon: f32,
    // Rows that are products of the same row of a.
    sharing: u32,
}

struct Params {
    walk: Walk,
    act: Activation,
    product: Product,
    weights: Weights,
    packing: Packing,
    zero_packing: Packing,
}

#if READ_A == k4
alias StoredA = vec4<S>;
alias UnitA = vec4<f32>;
#else
alias StoredA = S;
alias UnitA = f32;
#endif
#if C4
alias StoredC = vec4<S>;
#else
alias StoredC = S;
#endif
#if ZEROS == real
alias Zero = S;
#else
alias Zero = u32;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read a: array<StoredA>
#read b: array<u32>
#read scales: array<S>
#read zeros: array<Zero> if ZEROS != none
#read groups: array<i32> if READ_B == listed
#read experts: array<i32> if TILE == expert
#write c: array<StoredC>
#read bias?: array<S>
#read residual?: array<StoredC>
#read factor?: array<StoredC>
#read weight?: array<StoredA>

#include "products/matmul/read_a.wgsl"
#include "products/matmul/store.wgsl"
#include "products/packed/read_b.wgsl"
#if TILE == row || TILE == few || TILE == expert
#include "products/packed/rows.wgsl"
#else
#include "products/matmul/tiles.wgsl"
#endif

@compute @workgroup_size(SIDE, SIDE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    multiply(group, local, thread);
}
