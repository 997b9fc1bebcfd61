// QuantizedResize: bilinear, [n, h, w, c]. For each row of the output and then for each column, `table`
// has both neighbours and the distance from the lower: of T f32 the bits, of i32 in 1024ths.
#define T = f32 i32
#include "shared/index.wgsl"

struct Params { count: u32, rows: u32, columns: u32, channels: u32, height: u32, width: u32, nothing: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<i32>
#read table: array<u32>
#write y: array<i32>

#if T == f32
// Every step is rounded by itself: no compiler knows that this is the number that it was.
fn kept(v: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(v) ^ p.nothing);
}

fn part(v: i32, down: f32, right: f32) -> f32 {
    return kept(kept(f32(v) * down) * right);
}
#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let c = i % p.channels;
    let column = i / p.channels % p.columns;
    let row = i / p.channels / p.columns % p.rows;
    let image = i / p.channels / p.columns / p.rows * p.height;
    let v = row * 3u;
    let h = (p.rows + column) * 3u;
    let upper = (image + table[v]) * p.width;
    let lower = (image + table[v + 1u]) * p.width;
    let a = x[(upper + table[h]) * p.channels + c];
    let b = x[(upper + table[h + 1u]) * p.channels + c];
    let d = x[(lower + table[h]) * p.channels + c];
    let e = x[(lower + table[h + 1u]) * p.channels + c];
    let down = bitcast<T>(table[v + 2u]);
    let right = bitcast<T>(table[h + 2u]);
#if T == f32
    let up = kept(1.0 - down);
    let left = kept(1.0 - right);
    let sum = kept(kept(part(a, up, left) + part(d, down, left)) + part(b, up, right));
    y[i] = clamp(i32(kept(kept(sum + part(e, down, right)) + 0.5)), 0, 255);
#else
    let up = 1024 - down;
    let left = 1024 - right;
    let sum = a * up * left + d * down * left + b * up * right + e * down * right;
    y[i] = (sum + select(-(1 << 19u), 1 << 19u, sum > 0)) / (1 << 20u);
#endif
}
