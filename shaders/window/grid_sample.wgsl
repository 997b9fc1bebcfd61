// GridSample: y[n, c, points] is data x[n, c, spatial] read at grid[n, points, rank]. Axes are three,
// outermost first; those that are missing have one element and are not in the grid.
#define MODE = Nearest Linear Cubic
#include "shared/index.wgsl"
#include "shared/float.wgsl"

struct Params {
    count: u32,
    points: u32,
    channels: u32,
    rank: u32,
    size_0: u32,
    size_1: u32,
    size_2: u32,
    // 0 zeros, 1 border, 2 reflection.
    padding: u32,
    align: u32,
}

#if MODE == Nearest
const TAPS = 1u;
#elif MODE == Linear
const TAPS = 2u;
#else
const TAPS = 4u;
#endif

// Elements along one axis; those outside have weight 0.
struct Taps { at: array<u32, TAPS>, weight: array<f32, TAPS> }

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<f32>
#read grid: array<f32>
#write y: array<f32>

// Mirrors a coordinate at both ends of n elements. Of large ones rounding leaves no place: they stay inside.
fn reflect_at(v: f32, n: f32) -> f32 {
    let low = select(-0.5, 0.0, p.align == 1u);
    let range = select(n, n - 1.0, p.align == 1u);
    if range <= 0.0 { return low; }
    let period = 2.0 * range;
    let folded = (v - low) - floor((v - low) / period) * period;
    return low + clamp(min(folded, period - folded), 0.0, range);
}

fn padded(v: f32, n: f32) -> f32 {
    if p.padding == 1u { return clamp(v, 0.0, n - 1.0); }
    if p.padding == 2u { return reflect_at(v, n); }
    return v;
}

#if MODE == Cubic
fn cubic(distance: f32) -> f32 {
    let d = abs(distance);
    let a = -0.75;
    if d <= 1.0 { return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0; }
    return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
}
#endif

// Where on an axis of n elements a coordinate of the grid lies, moved inside as far as that changes no result.
fn place(normalised: f32, n: f32) -> f32 {
    let low = select(-0.5, 0.0, p.align == 1u);
    if is_nan(normalised) { return select(low, -8.0, p.padding == 0u); }
    if p.padding == 2u && is_inf(normalised) { return low; }
    // No product overflows.
    let w = clamp(normalised, -1e30, 1e30);
    var v = select(((w + 1.0) * n - 1.0) / 2.0, (w + 1.0) / 2.0 * (n - 1.0), p.align == 1u);
#if MODE == Nearest
    v = round(v);
#endif
#if MODE == Cubic
    // Every neighbour is clipped by itself; from two elements outside on all four are the border.
    if p.padding == 1u { return clamp(v, -2.0, n + 1.0); }
#endif
    let high = select(n - 0.5, n - 1.0, p.align == 1u);
    return select(v, padded(v, n), v < low || v > high);
}

fn taps(normalised: f32, size: u32) -> Taps {
    let n = f32(size);
    let v = place(normalised, n);
    let base = floor(v);
    let ratio = v - base;
    var t: Taps;
    for (var k = 0u; k < TAPS; k++) {
#if MODE == Nearest
        let element = padded(round(v), n);
        let weight = 1.0;
#elif MODE == Linear
        let element = padded(base + f32(k), n);
        let weight = select(1.0 - ratio, ratio, k == 1u);
#else
        let offset = f32(k) - 1.0;
        let element = padded(base + offset, n);
        let weight = cubic(offset - ratio);
#endif
        let inside = element >= 0.0 && element <= n - 1.0;
        t.at[k] = u32(clamp(element, 0.0, n - 1.0));
        t.weight[k] = select(0.0, weight, inside);
    }
    return t;
}

// The axis `axis` of 3 at a point; the grid names the innermost axis first.
fn axis(at: u32, which: u32, size: u32) -> Taps {
    if which + p.rank >= 3u { return taps(grid[at + 2u - which], size); }
    var t: Taps;
    t.weight[0] = 1.0;
    return t;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_id(id, groups);
    if i >= p.count { return; }
    let point = i % p.points;
    let image = i / p.points;
    let at = ((image / p.channels) * p.points + point) * p.rank;
    var t0 = axis(at, 0u, p.size_0);
    var t1 = axis(at, 1u, p.size_1);
    var t2 = axis(at, 2u, p.size_2);
    var sum = 0.0;
    for (var a = 0u; a < TAPS; a++) {
        for (var b = 0u; b < TAPS; b++) {
            let row = (image * p.size_0 + t0.at[a]) * p.size_1 + t1.at[b];
            let outer = t0.weight[a] * t1.weight[b];
            for (var c = 0u; c < TAPS; c++) {
                let weight = outer * t2.weight[c];
                // An element that does not count may be infinite.
                sum += select(0.0, weight * x[row * p.size_2 + t2.at[c]], weight != 0.0);
            }
        }
    }
    y[i] = sum;
}
