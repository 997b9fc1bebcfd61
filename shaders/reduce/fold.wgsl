// Reductions. Kept dimensions give the start, reduced ones the steps from there. GROUP: a workgroup
// makes one output element, else a thread does. Wide are integers of 64 bits.
#define GROUP: bool
#case Float
#define T = f32
#define OP = Sum Mean Max Min Prod L1 L2 LogSum LogSumExp SumSquare
#case Integer
#define T = i32 u32
#define OP = Sum Max Min Prod L1 SumSquare
#case Wide
#define T = vec2u
#define OP = Sum
#include "shared/index.wgsl"
#include "shared/float.wgsl"
#if T == vec2u
#include "shared/int64.wgsl"
#endif
#if GROUP
#include "shared/workgroup.wgsl"
#endif

struct Params {
    kept: array<vec4<u32>, 2>,
    kept_walk: array<vec4<u32>, 2>,
    reduced: array<vec4<u32>, 2>,
    reduced_walk: array<vec4<u32>, 2>,
    kept_rank: u32,
    reduced_rank: u32,
    outputs: u32,
    steps: u32,
    spare: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
#read x: array<T>
#write y: array<T>

// What changes no result: for Max and Min the end of the element type.
fn first() -> T {
#if OP == Prod
    return T(1);
#elif OP == LogSumExp
    return -infinity();
#elif OP == Max && T == f32
    return -infinity();
#elif OP == Min && T == f32
    return infinity();
#elif OP == Max && T == i32
    return i32(-2147483647 - 1) >> p.spare;
#elif OP == Max
    return 0u;
#elif OP == Min && T == i32
    return 2147483647 >> p.spare;
#elif OP == Min
    return 0xffffffffu >> p.spare;
#else
    return T(0);
#endif
}

// What exponents are made smaller by; nothing can be subtracted from infinity.
fn shift(top: T) -> T {
#if OP == LogSumExp
    if is_inf(top) { return 0.0; }
#endif
    return top;
}

// A term of the sum; `top` is the largest element where that is asked for.
fn term(v: T, top: T) -> T {
#if OP == L1
    return abs(v);
#elif OP == L2 || OP == SumSquare
    return v * v;
#elif OP == LogSumExp
    return exp(v - shift(top));
#else
    return v;
#endif
}

fn join(a: T, b: T) -> T {
#if OP == Prod
    return a * b;
#elif OP == Max && T == f32
    return max_nan(a, b);
#elif OP == Min && T == f32
    return min_nan(a, b);
#elif OP == Max
    return max(a, b);
#elif OP == Min
    return min(a, b);
#elif T == vec2u
    return add64(a, b);
#else
    return a + b;
#endif
}

fn finish(v: T, top: T) -> T {
#if OP == Mean
    return v / T(p.steps);
#elif OP == L2
    return sqrt(v);
#elif OP == LogSum
    return natural_log(v);
#elif OP == LogSumExp
    if is_inf(top) && top > 0.0 && !is_nan(v) { return top; }
    return natural_log(v) + shift(top);
#elif T == f32 || T == vec2u
    return v;
#else
    // Wraps what is longer than an element.
    return (v << p.spare) >> p.spare;
#endif
}

fn source(step: u32, base: u32) -> u32 {
    var rest = step;
    var at = base;
    for (var d = i32(p.reduced_rank) - 1; d > 0; d--) {
        let size = p.reduced[d >> 2u][d & 3];
        at += (rest % size) * p.reduced_walk[d >> 2u][d & 3];
        rest /= size;
    }
    return at + rest * p.reduced_walk[0].x;
}

fn start(output: u32) -> u32 {
    var rest = output;
    var at = 0u;
    for (var d = i32(p.kept_rank) - 1; d >= 0; d--) {
        let size = p.kept[d >> 2u][d & 3];
        at += (rest % size) * p.kept_walk[d >> 2u][d & 3];
        rest /= size;
    }
    return at;
}

#if GROUP
alias Partial = T;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let output = group_id(id, groups);
    let base = start(min(output, p.outputs - 1u));
    var top = T(0);
#if OP == LogSumExp
    var highest = first();
    for (var i = thread; i < p.steps; i += 64u) { highest = max(highest, x[source(i, base)]); }
    top = collect(thread, highest, true);
    var sum = T(0);
#else
    var sum = first();
#endif
    for (var i = thread; i < p.steps; i += 64u) { sum = join(sum, term(x[source(i, base)], top)); }
    sum = collect(thread, sum, false);
    if thread == 0u && output < p.outputs { y[output] = finish(sum, top); }
}
#else
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let output = linear_id(id, groups);
    if output >= p.outputs { return; }
    let base = start(output);
    var top = T(0);
#if OP == LogSumExp
    top = first();
    for (var i = 0u; i < p.steps; i++) { top = max(top, x[source(i, base)]); }
    var sum = T(0);
#else
    var sum = first();
#endif
    for (var i = 0u; i < p.steps; i++) { sum = join(sum, term(x[source(i, base)], top)); }
    y[output] = finish(sum, top);
}
#endif
