// QuantizedSoftmax, a row a thread (reference-cpu/src/quant/softmax.rs). `table` has the exponential of
// every distance from the largest element, then what it adds to the sum.
#include "shared/index.wgsl"
#include "shared/quantize.wgsl"

struct Params { rows: u32, length: u32, low: i32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<i32>
#read table: array<i32>
#write y: array<i32>

// `reciprocal_of_one_more` in core/src/fixed.rs: three steps of Newton and Raphson.
fn reciprocal(rest: u32) -> i32 {
    let half = i32((rest + 0x80000000u) >> 1u);
    var r = 1515870810 + fixed(half, -1010580540, 0);
    for (var i = 0; i < 3; i++) {
        r += saturated(fixed(r, (1 << 29u) - fixed(half, r, 0), 0), 2u);
    }
    return saturated(r, 1u);
}

fn saturated(x: i32, exponent: u32) -> i32 {
    let most = 0x7fffffff >> exponent;
    return select(select(x << exponent, 0x7fffffff, x > most), -0x7fffffff - 1, x < -most - 1);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = linear_id(id, groups);
    if row >= p.rows { return; }
    let first = row * p.length;
    var largest = x[first];
    for (var i = 1u; i < p.length; i++) { largest = max(largest, x[first + i]); }
    var sum = 0;
    for (var i = 0u; i < p.length; i++) { sum += table[256 + largest - x[first + i]]; }
    let headroom = countLeadingZeros(u32(sum));
    let scale = reciprocal((u32(sum) << headroom) - 0x80000000u);
    // Hundreds of equal elements leave nothing for each.
    let shift = 35u - headroom;
    for (var i = 0u; i < p.length; i++) {
        let product = fixed(scale, table[largest - x[first + i]], 0);
        y[first + i] = p.low + select(0, min(divide_by_power(product, min(shift, 31u)), 255), shift < 32u);
    }
}
