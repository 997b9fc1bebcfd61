// Elements divided by the p-norm of their line; one thread a line. A line of zeros stays one.
#include "shared/index.wgsl"
#include "shared/float.wgsl"

struct Params { lines: u32, size: u32, inner: u32, power: u32 }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#write y: array<f32>

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let line = linear_id(id, groups);
    if line >= p.lines { return; }
    let base = (line / p.inner) * p.size * p.inner + line % p.inner;
    var sum = 0.0;
    for (var i = 0u; i < p.size; i++) {
        let v = abs(x[base + i * p.inner]);
        if p.power == 1u { sum += v; } else if p.power == 2u { sum += v * v; } else { sum += power(v, f32(p.power)); }
    }
    if p.power == 2u { sum = sqrt(sum); } else if p.power > 2u { sum = power(sum, 1.0 / f32(p.power)); }
    for (var i = 0u; i < p.size; i++) {
        let at = base + i * p.inner;
        y[at] = select(x[at] / sum, 0.0, sum == 0.0);
    }
}
