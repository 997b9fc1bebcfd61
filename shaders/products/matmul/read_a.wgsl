// Four elements of a row of a along k: of a matrix, or of the windows of an image.
// Loads are not branched around but from a place that is always there: drivers inline them often, and
// branches make that slow, to compile most of all.

// What is known of a row of a before k is.
struct Row {
    valid: bool,
    base: u32,
    y: i32,
    x: i32,
}

// What is known of an element along k.
struct Tap {
    valid: bool,
    offset: u32,
    y: i32,
    x: i32,
}

#if READ_A == conv4 || READ_A == conv1
fn row_of(m: u32, base: u32) -> Row {
    let at = m % p.im2col.positions;
    return Row(
        m < p.product.m,
        base + (m / p.im2col.positions) * p.im2col.x_image,
        i32((at / p.im2col.out_w) * p.im2col.stride_h) - p.im2col.pad_h,
        i32((at % p.im2col.out_w) * p.im2col.stride_w) - p.im2col.pad_w,
    );
}

fn tap_of(k: u32) -> Tap {
    let tap = k / p.im2col.channels;
    return Tap(
        k < p.product.k,
        (k % p.im2col.channels) * p.im2col.x_c,
        i32((tap / p.im2col.kernel_w) * p.im2col.dilation_h),
        i32((tap % p.im2col.kernel_w) * p.im2col.dilation_w),
    );
}

fn read_a(r: Row, t: Tap) -> UnitA {
    let y = r.y + t.y;
    let x = r.x + t.x;
    let valid = r.valid && t.valid && y >= 0 && x >= 0 && y < i32(p.im2col.in_h) && x < i32(p.im2col.in_w);
    let i = r.base + u32(y) * p.im2col.x_h + u32(x) * p.im2col.x_w + t.offset;
#if READ_A == conv4
    return select(UnitA(0.0), UnitA(a[select(0u, i / 4u, valid)]), valid);
#else
    return select(UnitA(0.0), UnitA(a[select(0u, i, valid)]), valid);
#endif
}

#if FETCH == direct
#if READ_A == conv4
const CHANNELS = 4u;
#else
const CHANNELS = 1u;
#endif

// Where the channels of a tap of a row begin; negative in the padding.
fn place(r: Row, tap: vec2<i32>) -> i32 {
    let y = r.y + tap.x;
    let x = r.x + tap.y;
    let valid = r.valid && y >= 0 && x >= 0 && y < i32(p.im2col.in_h) && x < i32(p.im2col.in_w);
    return select(-1, i32(r.base) + y * i32(p.im2col.x_h) + x * i32(p.im2col.x_w), valid);
}

fn read_at(at: i32, offset: u32) -> UnitA {
    let i = select(0u, (u32(at) + offset) / CHANNELS, at >= 0);
    return select(UnitA(0.0), UnitA(a[i]), at >= 0);
}
#endif
#else
fn row_of(m: u32, base: u32) -> Row {
    return Row(m < p.product.m, base + m * p.product.a_row, 0, 0);
}

fn tap_of(k: u32) -> Tap {
    return Tap(k < p.product.k, k * p.product.a_col, 0, 0);
}

fn read_a(r: Row, t: Tap) -> UnitA {
    let valid = r.valid && t.valid;
    let i = r.base + t.offset;
#if READ_A == k4
    return select(UnitA(0.0), UnitA(a[select(0u, i / 4u, valid)]), valid);
#else
    return select(UnitA(0.0), UnitA(a[select(0u, i, valid)]), valid);
#endif
}
#endif

// Four elements of a row along k; the taps of a quad are known before the rows.
#if READ_A == k4 || READ_A == conv4
struct Taps { t: Tap }

fn taps_of(k: u32) -> Taps {
    return Taps(tap_of(k));
}

fn load_a(r: Row, t: Taps) -> vec4<f32> {
    return read_a(r, t.t);
}
#else
struct Taps { t0: Tap, t1: Tap, t2: Tap, t3: Tap }

fn taps_of(k: u32) -> Taps {
    return Taps(tap_of(k), tap_of(k + 1u), tap_of(k + 2u), tap_of(k + 3u));
}

fn load_a(r: Row, t: Taps) -> vec4<f32> {
    return vec4<f32>(read_a(r, t.t0), read_a(r, t.t1), read_a(r, t.t2), read_a(r, t.t3));
}
#endif
