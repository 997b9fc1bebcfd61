//! Four elements in plain Rust, for machines without a known instruction set.

use std::array::from_fn;

use half::f16;

use super::Simd;

#[derive(Clone, Copy)]
pub(crate) struct Portable;

type V = [f32; 4];

/// Columns of a square as its rows.
#[inline(always)]
pub(crate) fn turn(columns: [&V; 4]) -> [V; 4] {
    from_fn(|i| columns.map(|column| column[i]))
}

impl Simd for Portable {
    const LANES: usize = 4;
    const TILE_ROWS: usize = 8;
    const TILE_VECTORS: usize = 2;
    // As in WebAssembly, so that native tests go that way, too.
    const UNROLLED: bool = false;
    type V = V;
    type Mask = [bool; 4];

    #[inline(always)]
    fn splat(self, x: f32) -> V {
        [x; 4]
    }
    #[inline(always)]
    fn add(self, a: V, b: V) -> V {
        from_fn(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn sub(self, a: V, b: V) -> V {
        from_fn(|i| a[i] - b[i])
    }
    #[inline(always)]
    fn mul(self, a: V, b: V) -> V {
        from_fn(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn div(self, a: V, b: V) -> V {
        from_fn(|i| a[i] / b[i])
    }
    #[inline(always)]
    fn fma(self, a: V, b: V, c: V) -> V {
        from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn min(self, a: V, b: V) -> V {
        from_fn(|i| if b[i] < a[i] { b[i] } else { a[i] })
    }
    #[inline(always)]
    fn max(self, a: V, b: V) -> V {
        from_fn(|i| if b[i] > a[i] { b[i] } else { a[i] })
    }
    #[inline(always)]
    fn abs(self, a: V) -> V {
        a.map(f32::abs)
    }
    #[inline(always)]
    fn neg(self, a: V) -> V {
        a.map(|x| -x)
    }
    #[inline(always)]
    fn sqrt(self, a: V) -> V {
        a.map(f32::sqrt)
    }
    #[inline(always)]
    fn floor(self, a: V) -> V {
        a.map(f32::floor)
    }
    #[inline(always)]
    fn ceil(self, a: V) -> V {
        a.map(f32::ceil)
    }
    #[inline(always)]
    fn round(self, a: V) -> V {
        a.map(f32::round_ties_even)
    }
    #[inline(always)]
    fn exp2_whole(self, n: V) -> V {
        n.map(|n| f32::from_bits(((n as i32 + 127) as u32) << 23))
    }
    #[inline(always)]
    fn less(self, a: V, b: V) -> [bool; 4] {
        from_fn(|i| a[i] < b[i])
    }
    #[inline(always)]
    fn is_nan(self, a: V) -> [bool; 4] {
        a.map(f32::is_nan)
    }
    #[inline(always)]
    fn select(self, mask: [bool; 4], yes: V, no: V) -> V {
        from_fn(|i| if mask[i] { yes[i] } else { no[i] })
    }
    #[inline(always)]
    fn sum(self, a: V) -> f32 {
        (a[0] + a[2]) + (a[1] + a[3])
    }
    #[inline(always)]
    fn largest(self, a: V) -> f32 {
        a[0].max(a[1]).max(a[2].max(a[3]))
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> V {
        // SAFETY: `p` is valid for reads of four elements.
        unsafe { p.cast::<V>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: V) {
        // SAFETY: `p` is valid for writes of four elements.
        unsafe { p.cast::<V>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: *const f32, n: usize) -> V {
        // SAFETY: `p` is valid for reads of `n` elements, and only the first `n` are read.
        from_fn(|i| if i < n { unsafe { *p.add(i) } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, v: V, n: usize) {
        for (i, x) in v.into_iter().enumerate().take(n) {
            // SAFETY: `p` is valid for writes of `n` elements, and `i` is below `n`.
            unsafe { *p.add(i) = x }
        }
    }
    #[inline(always)]
    unsafe fn load_u2(self, p: *const u8) -> V {
        // SAFETY: `p` is valid for reads of a byte.
        let byte = unsafe { *p };
        from_fn(|i| f32::from((byte >> (2 * i)) & 3))
    }
    #[inline(always)]
    unsafe fn load_u4(self, p: *const u8) -> V {
        // SAFETY: `p` is valid for reads of two bytes.
        let bytes = unsafe { [*p, *p.add(1)] };
        from_fn(|i| f32::from((bytes[i / 2] >> (4 * (i % 2))) & 15))
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const u16) -> V {
        // SAFETY: `p` is valid for reads of four elements.
        unsafe { p.cast::<[u16; 4]>().read_unaligned() }.map(|bits| f16::from_bits(bits).to_f32())
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const u16) -> V {
        // SAFETY: `p` is valid for reads of four elements.
        let each = unsafe { p.cast::<[u16; 4]>().read_unaligned() };
        each.map(|bits| f32::from_bits(u32::from(bits) << 16))
    }
    #[inline(always)]
    unsafe fn load_u8(self, p: *const u8) -> V {
        // SAFETY: `p` is valid for reads of four bytes.
        unsafe { p.cast::<[u8; 4]>().read_unaligned() }.map(f32::from)
    }
}
