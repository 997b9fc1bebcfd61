// A Gather of numbers of a few bits, which are widened: y[outer, i, inner] = (x[outer, indices[i], inner] - zero) * scale, with
// a scale and a zero point for each block along an axis of x.
//   ZEROS: none where all blocks have one, packed as the table, or real as the scales.
#define S: Stored
#define ZEROS = none packed real
#include "shared/indices.wgsl"
#include "shared/packed.wgsl"

struct Params {
    packing: Packing,
    zero_packing: Packing,
    @align(16) count: u32,
    picked: u32,
    size: u32,
    inner: u32,
    // The axis of the blocks, blocks along it, and the elements behind it.
    length: u32,
    block: u32,
    blocks: u32,
    behind: u32,
    // Blocks of a row, and zero points as they are packed.
    row: u32,
    zero_row: u32,
    // Bits of a word above those of a signed number; 0 for others.
    spare: u32,
    // The zero point where there is no input of zero points.
    middle: i32,
    node: u32,
}

#if ZEROS == real
alias Zero = S;
#else
alias Zero = u32;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<u32>
#read indices: array<Index>
#read scales: array<S>
#read zeros: array<Zero> if ZEROS != none
#write y: array<S>
#fault

fn extended(number: u32) -> i32 {
    return bitcast<i32>(number << p.spare) >> p.spare;
}

// A number of the table less the zero point of its block.
fn from_zero(number: i32, block: u32) -> f32 {
#if ZEROS == real
    return f32(number) - f32(zeros[block]);
#elif ZEROS == packed
    let i = block / p.row * p.zero_row + block % p.row;
    return f32(number - extended(number_of(zeros[word_of(i, p.zero_packing)], i, p.zero_packing)));
#else
    return f32(number - p.middle);
#endif
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let rest = i / p.inner;
    let k = place_of(indices[rest % p.picked], p.size);
    if k < 0 {
        fault[0] = p.node;
        return;
    }
    let source = ((rest / p.picked) * p.size + u32(k)) * p.inner + i % p.inner;
    let at = source / p.behind;
    let block = (at / p.length * p.blocks + at % p.length / p.block) * p.behind + source % p.behind;
    let number = extended(number_of(x[word_of(source, p.packing)], source, p.packing));
    y[i] = S(from_zero(number, block) * f32(scales[block]));
}
