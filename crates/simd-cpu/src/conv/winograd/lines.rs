//! The transforms of a line; those of a square are one of its columns and then one of its rows.

use crate::isa::Simd;

/// A line of the filter at the points 0, 1, -1, (2, -2,) and infinity.
#[inline(always)]
pub(super) fn filter_line<S: Simd, const IN: usize>(s: S, g: [S::V; 3]) -> [S::V; IN] {
    let mut t = [g[2]; IN];
    let (even, odd) = (s.add(g[0], g[2]), g[1]);
    if IN == 4 {
        let half = s.splat(0.5);
        t[0] = g[0];
        t[1] = s.mul(half, s.add(even, odd));
        t[2] = s.mul(half, s.sub(even, odd));
    } else {
        let (two, four) = (s.splat(2.0), s.splat(4.0));
        let (even2, odd2) = (s.fma(four, g[2], g[0]), s.mul(two, g[1]));
        t[0] = s.mul(s.splat(0.25), g[0]);
        t[1] = s.div(s.add(even, odd), s.splat(-6.0));
        t[2] = s.div(s.sub(odd, even), s.splat(6.0));
        t[3] = s.div(s.add(even2, odd2), s.splat(24.0));
        t[4] = s.div(s.sub(even2, odd2), s.splat(24.0));
    }
    t
}

/// The transform of a line of input.
#[inline(always)]
pub(super) fn input_line<S: Simd, const IN: usize>(s: S, d: [S::V; IN]) -> [S::V; IN] {
    let mut t = d;
    if IN == 4 {
        t[0] = s.sub(d[0], d[2]);
        t[1] = s.add(d[1], d[2]);
        t[2] = s.sub(d[2], d[1]);
        t[3] = s.sub(d[1], d[3]);
    } else {
        let (two, four, five) = (s.splat(2.0), s.splat(4.0), s.splat(-5.0));
        let even = s.fma(s.splat(-4.0), d[2], d[4]);
        let odd = s.fma(s.splat(-4.0), d[1], d[3]);
        let even2 = s.sub(d[4], d[2]);
        let odd2 = s.mul(two, s.sub(d[3], d[1]));
        t[0] = s.fma(four, d[0], s.fma(five, d[2], d[4]));
        t[1] = s.add(even, odd);
        t[2] = s.sub(even, odd);
        t[3] = s.add(even2, odd2);
        t[4] = s.sub(even2, odd2);
        t[5] = s.fma(four, d[1], s.fma(five, d[3], d[5]));
    }
    t
}

/// The inverse transform: `IN - 2` elements of output, the rest is rubbish.
#[inline(always)]
pub(super) fn output_line<S: Simd, const IN: usize>(s: S, m: [S::V; IN]) -> [S::V; IN] {
    let mut y = m;
    let (sum, difference) = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
    if IN == 4 {
        y[0] = s.add(m[0], sum);
        y[1] = s.sub(difference, m[3]);
    } else {
        let (sum2, difference2) = (s.add(m[3], m[4]), s.sub(m[3], m[4]));
        y[0] = s.add(s.add(m[0], sum), sum2);
        y[1] = s.fma(s.splat(2.0), difference2, difference);
        y[2] = s.fma(s.splat(4.0), sum2, sum);
        y[3] = s.add(s.fma(s.splat(8.0), difference2, difference), m[5]);
    }
    y
}
