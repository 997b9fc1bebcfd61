// Where position `i` of `p.dims` lies in two tensors that `p.walk_a` and `p.walk_b` step through. A step
// of zero broadcasts; the first dimension takes all that is left of `i`.
fn walk_both(i: u32) -> vec2<i32> {
    var rest = i;
    var at = vec2<i32>(0);
    for (var d = i32(p.rank) - 1; d > 0; d--) {
        let size = p.dims[d >> 2u][d & 3];
        at += i32(rest % size) * vec2<i32>(p.walk_a[d >> 2u][d & 3], p.walk_b[d >> 2u][d & 3]);
        rest /= size;
    }
    return at + i32(rest) * vec2<i32>(p.walk_a[0].x, p.walk_b[0].x);
}
