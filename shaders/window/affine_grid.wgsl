// AffineGrid: y[n, points, rank] = theta[n, rank, rank + 1] applied to the points of a regular grid,
// whose innermost axis comes first.
#include "shared/index.wgsl"

struct Params {
    count: u32,
    points: u32,
    rank: u32,
    align: u32,
    // Innermost axis first.
    size_0: u32,
    size_1: u32,
    size_2: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read theta: array<f32>
#write y: array<f32>

fn coordinate(i: u32, n: u32) -> f32 {
    if p.align == 0u { return f32(2u * i + 1u) / f32(n) - 1.0; }
    // One element lies in the centre, as in PyTorch.
    if n < 2u { return 0.0; }
    return -1.0 + 2.0 * f32(i) / f32(n - 1u);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let row = i % p.rank;
    let place = i / p.rank;
    let point = place % p.points;
    let row_at = ((place / p.points) * p.rank + row) * (p.rank + 1u);
    var sum = theta[row_at + p.rank];
    sum += theta[row_at] * coordinate(point % p.size_0, p.size_0);
    let rest = point / p.size_0;
    if p.rank > 1u { sum += theta[row_at + 1u] * coordinate(rest % p.size_1, p.size_1); }
    if p.rank > 2u { sum += theta[row_at + 2u] * coordinate(rest / p.size_1, p.size_2); }
    y[i] = sum;
}
