// Products and convolutions of bytes, summed in i32: any layout by strides, any groups. A thread makes
// RM rows (images or positions) of four channels.
//   READ_X: how data are read: strided, k4 four at once along the channels of a tap, n4 four channels
//      that are convolved one by one.
//   READ_W: packed a word holds the signed bytes of four channels, [batch, tap, channel of data, quad];
//      strided an element a word.
//   C4: four channels are stored at once.
#define READ_X = strided k4 n4
#define READ_W = packed strided
#define RM = 1 4
#define C4: bool
#define FINISH: Finish
#include "shared/index.wgsl"
#include "shared/requantize.wgsl"
#include "shared/walk.wgsl"
#include "shared/window.wgsl"

struct Params {
    // Batches of matrices, or groups of channels, of the data and of the weights.
    walk: Walk,
    window: Window,
    output: vec3<u32>,
    // Strides of the data along the axes.
    x_space: vec3<u32>,
    units: u32,
    rows: u32,
    outputs: u32,
    blocks: u32,
    quads: u32,
    positions: u32,
    // Channels of the data for one tap.
    channels: u32,
    x_image: u32,
    x_c: u32,
    w_n: u32,
    w_c: u32,
    w_tap: u32,
    y_batch: u32,
    y_image: u32,
    y_row: u32,
    y_col: u32,
    // Channels with parameters of their own in a batch.
    own: u32,
}

#if READ_X == strided
alias Data = i32;
const STEP = 1u;
#else
alias Data = vec4<i32>;
#if READ_X == k4
const STEP = 4u;
#else
const STEP = 1u;
#endif
#endif
#if READ_W == packed
alias Weight = u32;
#else
alias Weight = i32;
#endif
#if C4
alias Stored = vec4<i32>;
#else
alias Stored = i32;
#endif

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<Data>
#read w: array<Weight>
#read parameters: array<vec4<u32>>
#write y: array<Stored>

// Weights of four channels.
fn load_w(base: u32, tap: u32, c: u32, quad: u32) -> vec4<i32> {
#if READ_W == packed
    let word = bitcast<i32>(w[base + (tap * p.channels + c) * p.quads + quad]);
    return (vec4<i32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
#else
    let at = base + tap * p.w_tap + c * p.w_c;
    let n = min(vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(p.outputs - 1u)) * p.w_n;
    return vec4<i32>(w[at + n.x], w[at + n.y], w[at + n.z], w[at + n.w]);
#endif
}

// Data at an index, or what stands for zero where that is negative.
fn load_x(at: i32, offset: u32, zero: i32) -> Data {
#if READ_X == strided
    let i = select(0u, u32(at) + offset, at >= 0);
#else
    let i = select(0u, (u32(at) + offset) / 4u, at >= 0);
#endif
    return select(Data(0), x[i] - zero, at >= 0);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.units { return; }
    let quad = i % p.quads;
    let n = quad * 4u;
    let block = i / p.quads % p.blocks;
    let batch = i / p.quads / p.blocks;
    let start = walk_both(batch);
    var base_x = u32(start.x);
    let base_w = u32(start.y);
#if READ_X == n4
    base_x += n;
#endif
    let zero = bitcast<i32>(parameters[0].x);
    // The parameters of channels behind the last are not used.
    let own = batch * p.own + 1u;
    let last = p.outputs - 1u;
    let zeros = bitcast<vec4<i32>>(vec4<u32>(
        parameters[own + n].x,
        parameters[own + min(n + 1u, last)].x,
        parameters[own + min(n + 2u, last)].x,
        parameters[own + min(n + 3u, last)].x,
    ));
    var base: array<u32, RM>;
    var origin: array<vec3<i32>, RM>;
    var sums: array<vec4<i32>, RM>;
    for (var r = 0u; r < RM; r++) {
        let m = min(block * RM + r, p.rows - 1u);
        let at = m % p.positions;
        base[r] = base_x + m / p.positions * p.x_image;
        let o = vec3<u32>(at / (p.output.y * p.output.z), at / p.output.z % p.output.y, at % p.output.z);
        origin[r] = vec3<i32>(o * p.window.stride) - p.window.pad;
    }
    var tap = 0u;
    for (var kz = 0u; kz < p.window.kernel.x; kz++) {
        for (var ky = 0u; ky < p.window.kernel.y; ky++) {
            for (var kx = 0u; kx < p.window.kernel.z; kx++) {
                var at: array<i32, RM>;
                for (var r = 0u; r < RM; r++) {
                    let s = origin[r] + vec3<i32>(vec3<u32>(kz, ky, kx) * p.window.dilation);
                    let inside = all(s >= vec3<i32>(0)) && all(s < vec3<i32>(p.window.input));
                    let place = vec3<u32>(s) * p.x_space;
                    at[r] = select(-1, i32(base[r] + place.x + place.y + place.z), inside);
                }
                for (var c = 0u; c < p.channels; c += STEP) {
                    let w0 = load_w(base_w, tap, c, quad) - zeros;
#if READ_X == k4
                    let w1 = load_w(base_w, tap, c + 1u, quad) - zeros;
                    let w2 = load_w(base_w, tap, c + 2u, quad) - zeros;
                    let w3 = load_w(base_w, tap, c + 3u, quad) - zeros;
#endif
                    for (var r = 0u; r < RM; r++) {
                        let v = load_x(at[r], c * p.x_c, zero);
#if READ_X == k4
                        sums[r] += v.x * w0 + v.y * w1 + v.z * w2 + v.w * w3;
#else
                        sums[r] += v * w0;
#endif
                    }
                }
                tap++;
            }
        }
    }
    for (var r = 0u; r < RM; r++) {
        let m = block * RM + r;
        if m >= p.rows { break; }
        let to = batch * p.y_batch + m / p.positions * p.y_image + m % p.positions * p.y_row + n * p.y_col;
        let c = own - 1u + n;
        let v = sums[r];
#if C4
        y[to / 4u] = vec4<i32>(finish(v.x, c), finish(v.y, c + 1u), finish(v.z, c + 2u), finish(v.w, c + 3u));
#else
        for (var j = 0u; j < min(4u, p.outputs - n); j++) {
            y[to + j * p.y_col] = finish(v[j], c + j);
        }
#endif
    }
}
