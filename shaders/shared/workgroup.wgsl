// What the 64 threads of a workgroup make of one value each: the largest, or what `join` makes of them.
// The file that includes this one defines `Partial` and `join`. All threads come here and get the result.
var<workgroup> partial: array<Partial, 64>;

fn collect(thread: u32, v: Partial, largest: bool) -> Partial {
    partial[thread] = v;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half >>= 1u) {
        if thread < half {
            let other = partial[thread + half];
            if largest { partial[thread] = max(partial[thread], other); }
            else { partial[thread] = join(partial[thread], other); }
        }
        workgroupBarrier();
    }
    let r = partial[0];
    // Whoever comes next writes there.
    workgroupBarrier();
    return r;
}
