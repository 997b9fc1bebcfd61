// Keeps one triangle of matrices of rows x columns.
#define T: Moved
#include "shared/index.wgsl"

struct Params { count: u32, rows: u32, columns: u32, upper: u32, k: i32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#write y: array<T>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let column = i32(i % p.columns);
    let row = i32((i / p.columns) % p.rows);
    let keep = select(column <= row + p.k, column >= row + p.k, p.upper == 1u);
    if keep { y[i] = x[i]; } else { y[i] = T(0); }
}
