// Positions of `dims`, and what a step along each means in two tensors. A step of zero broadcasts.
struct Walk {
    dims: array<vec4<u32>, 2>,
    a: array<vec4<i32>, 2>,
    b: array<vec4<i32>, 2>,
    rank: u32,
}

// Where position `i` of `p.walk` lies in both tensors; the first dimension takes all that is left of `i`.
fn walk_both(i: u32) -> vec2<i32> {
    var rest = i;
    var at = vec2<i32>(0);
    for (var d = i32(p.walk.rank) - 1; d > 0; d--) {
        let size = p.walk.dims[d >> 2u][d & 3];
        at += i32(rest % size) * vec2<i32>(p.walk.a[d >> 2u][d & 3], p.walk.b[d >> 2u][d & 3]);
        rest /= size;
    }
    return at + i32(rest) * vec2<i32>(p.walk.a[0].x, p.walk.b[0].x);
}
