// A whole recurrent layer after the product of inputs and weights: one workgroup runs one direction
// of one batch element through time. xw is [time, batch, directions, gates, hidden] (batch and
// time exchanged with batch_first), r is [directions, hidden, gates, hidden].
#define CELL = lstm gru rnn
#include "shared/float.wgsl"

struct Params {
    time: u32,
    batch: u32,
    directions: u32,
    hidden: u32,
    // Strides of time and batch in xw (in rows of directions*gates*hidden) and in y.
    xw_time: u32,
    xw_batch: u32,
    y_time: u32,
    y_batch: u32,
    y_direction: u32,
    // Strides of batch and direction in h and c.
    h_batch: u32,
    h_direction: u32,
    backward: u32,
    clip: f32,
    cell_clip: f32,
    linear_before_reset: u32,
}

#if CELL == lstm
const GATES = 4u;
#elif CELL == gru
const GATES = 3u;
#else
const GATES = 1u;
#endif
// Workgroup memory for two copies of h and up to two vectors more: 16 KiB.
const MOST = 1024u;

@group(0) @binding(0) var<uniform> p: Params;
#read xw: array<f32>
#read r: array<f32>
// y, or a scratch of its size.
#write y: array<f32>
#write last_h: array<f32>
// [directions, 2, gates, hidden]; zeros where there is none.
#read bias: array<f32>
#read first_h: array<f32>
#write last_c: array<f32> if CELL == lstm
#read first_c: array<f32> if CELL == lstm

var<workgroup> h: array<f32, 2048>;
#if CELL == lstm
var<workgroup> c: array<f32, MOST>;
#elif CELL == gru
// For gates that reset h before the product: the reset h, and the update gate.
var<workgroup> reset_h: array<f32, MOST>;
var<workgroup> update: array<f32, MOST>;
#endif

fn limit(v: f32) -> f32 {
    return clamp(v, -p.clip, p.clip);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let b = group.x;
    let d = group.y;
    let n = p.hidden;
    let origin = b * p.h_batch + d * p.h_direction;
    for (var j = thread; j < n; j += 256u) {
        h[j] = first_h[origin + j];
#if CELL == lstm
        c[j] = first_c[origin + j];
#endif
    }
    workgroupBarrier();
    let backward = p.backward == 1u || d == 1u;
    let biases = d * 2u * GATES * n;
    for (var step = 0u; step < p.time; step++) {
        let t = select(step, p.time - 1u - step, backward);
        let old = (step & 1u) * MOST;
        let new_h = MOST - old;
        let row = ((t * p.xw_time + b * p.xw_batch) * p.directions + d) * GATES * n;
        for (var j = thread; j < n; j += 256u) {
            // Cleared one by one: SwiftShader as Chromium uses it clears a variable once, not in
            // every turn of the loop around it.
            var sums: array<f32, GATES>;
            for (var g = 0u; g < GATES; g++) { sums[g] = 0.0; }
            let weights = d * n * GATES * n + j;
            for (var k = 0u; k < n; k++) {
                let v = h[old + k];
                for (var g = 0u; g < GATES; g++) {
                    sums[g] = fma(v, r[weights + (k * GATES + g) * n], sums[g]);
                }
            }
#if CELL == lstm
            // Gates i, o, f, c.
            for (var g = 0u; g < GATES; g++) {
                sums[g] = limit(sums[g] + xw[row + g * n + j] + bias[biases + g * n + j] + bias[biases + (GATES + g) * n + j]);
            }
            let cell = clamp(sigmoid(sums[2]) * c[j] + sigmoid(sums[0]) * tanh_safe(sums[3]), -p.cell_clip, p.cell_clip);
            c[j] = cell;
            let v = sigmoid(sums[1]) * tanh_safe(cell);
#elif CELL == gru
            // Gates z, r, h.
            let z = sigmoid(limit(sums[0] + xw[row + j] + bias[biases + j] + bias[biases + GATES * n + j]));
            let reset = sigmoid(limit(sums[1] + xw[row + n + j] + bias[biases + n + j] + bias[biases + (GATES + 1u) * n + j]));
            let hidden = sums[2] + bias[biases + (GATES + 2u) * n + j];
            let fresh = tanh_safe(limit(xw[row + 2u * n + j] + bias[biases + 2u * n + j] + reset * hidden));
            let v = (1.0 - z) * fresh + z * h[old + j];
            reset_h[j] = reset * h[old + j];
            update[j] = z;
#else
            let v = tanh_safe(limit(sums[0] + xw[row + j] + bias[biases + j] + bias[biases + n + j]));
#endif
            h[new_h + j] = v;
            y[t * p.y_time + b * p.y_batch + d * p.y_direction + j] = v;
        }
        workgroupBarrier();
#if CELL == gru
        if p.linear_before_reset == 0u {
            for (var j = thread; j < n; j += 256u) {
                let weights = (d * n * GATES + 2u) * n + j;
                var sum = xw[row + 2u * n + j] + bias[biases + 2u * n + j] + bias[biases + (GATES + 2u) * n + j];
                for (var k = 0u; k < n; k++) { sum = fma(reset_h[k], r[weights + k * GATES * n], sum); }
                let v = (1.0 - update[j]) * tanh_safe(limit(sum)) + update[j] * h[old + j];
                h[new_h + j] = v;
                y[t * p.y_time + b * p.y_batch + d * p.y_direction + j] = v;
            }
            workgroupBarrier();
        }
#endif
    }
    let end = (p.time & 1u) * MOST;
    for (var j = thread; j < n; j += 256u) {
        last_h[origin + j] = h[end + j];
#if CELL == lstm
        last_c[origin + j] = c[j];
#endif
    }
}
