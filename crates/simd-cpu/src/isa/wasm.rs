//! WebAssembly simd128; with the feature `relaxed-simd`, fused multiply-add.

use std::arch::wasm32::*;

use super::{Constant, Simd, with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Wasm;

#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn multiply_add(a: v128, b: v128, c: v128) -> v128 {
    f32x4_relaxed_madd(a, b, c)
}
#[cfg(not(target_feature = "relaxed-simd"))]
#[inline(always)]
fn multiply_add(a: v128, b: v128, c: v128) -> v128 {
    f32x4_add(c, f32x4_mul(a, b))
}

/// A number in all lanes, read from memory: LLVM puts constants where they are used, and V8 makes each of them there, by three
/// instructions.
#[inline(always)]
pub(super) fn known(x: &'static Constant) -> v128 {
    // SAFETY: it has the size and the alignment of a vector.
    unsafe { std::ptr::from_ref(x).cast::<v128>().read_volatile() }
}

/// Whether the browser's machine is an x86: there alone a NaN that is computed has its sign bit set.
/// XNNPACK tells them apart so, too.
#[inline(always)]
fn on_x86() -> bool {
    let zero = std::hint::black_box(0.0f32);
    (zero / zero).is_sign_negative()
}

/// `a < b ? b : a`. With relaxed SIMD, LLVM turns `pmin`, `pmax` and a plain selection into
/// instructions that may lose a NaN; it does not look through `bitselect`.
#[inline(always)]
fn larger(a: v128, b: v128) -> v128 {
    if cfg!(target_feature = "relaxed-simd") {
        v128_bitselect(b, a, f32x4_lt(a, b))
    } else {
        f32x4_pmax(a, b)
    }
}

/// `b < a ? b : a`.
#[inline(always)]
fn smaller(a: v128, b: v128) -> v128 {
    if cfg!(target_feature = "relaxed-simd") {
        v128_bitselect(b, a, f32x4_lt(b, a))
    } else {
        f32x4_pmin(a, b)
    }
}

/// Columns of a square as its rows. The compiler moves them one element at a time.
#[inline(always)]
pub(crate) fn turn(columns: [&[f32; 4]; 4]) -> [[f32; 4]; 4] {
    // SAFETY: each column has the four elements of a vector.
    let [a, b, c, d] = columns.map(|column| unsafe { v128_load(column.as_ptr().cast()) });
    let (ab, cd) = (
        i32x4_shuffle::<0, 4, 1, 5>(a, b),
        i32x4_shuffle::<0, 4, 1, 5>(c, d),
    );
    let (ab2, cd2) = (
        i32x4_shuffle::<2, 6, 3, 7>(a, b),
        i32x4_shuffle::<2, 6, 3, 7>(c, d),
    );
    let rows = [
        i64x2_shuffle::<0, 2>(ab, cd),
        i64x2_shuffle::<1, 3>(ab, cd),
        i64x2_shuffle::<0, 2>(ab2, cd2),
        i64x2_shuffle::<1, 3>(ab2, cd2),
    ];
    let mut square = [[0.0f32; 4]; 4];
    for (row, to) in rows.into_iter().zip(&mut square) {
        // SAFETY: a row has the four elements of a vector.
        unsafe { v128_store(to.as_mut_ptr().cast(), row) }
    }
    square
}

impl Simd for Wasm {
    const LANES: usize = 4;
    // As many as AArch64's thirty-two registers hold.
    const TILE_ROWS: usize = 8;
    const TILE_VECTORS: usize = 2;
    // From steps in a row LLVM makes one expression for each sum, with all factors alive at once: V8 keeps
    // those in memory for which it has no register, and unrolls the loop itself, in order.
    const UNROLLED: bool = false;
    type V = v128;
    type Mask = v128;

    #[inline(always)]
    unsafe fn load_placed<const BITS: usize>(self, p: *const u8) -> v128 {
        // SAFETY: so many numbers are read.
        unsafe {
            let each = match BITS {
                2 => v128_and(v128_load8_splat(p), i32x4(3, 3 << 2, 3 << 4, 3 << 6)),
                4 => {
                    let places = i32x4(15, 15 << 4, 15 << 8, 15 << 12);
                    v128_and(v128_load16_splat(p.cast()), places)
                }
                _ => return self.load_u8(p),
            };
            f32x4_convert_i32x4(each)
        }
    }
    #[inline(always)]
    fn place(bits: usize, lane: usize) -> f32 {
        match bits {
            2 | 4 => (1u32 << (bits * (lane % 4))) as f32,
            _ => 1.0,
        }
    }

    /// Four where V8 has x86-64's registers but one: eight sums, a column of A and a vector of B.
    #[inline(always)]
    fn tile_rows(self) -> usize {
        if on_x86() { 4 } else { 8 }
    }

    #[inline(always)]
    fn constant(self, x: &'static Constant) -> v128 {
        known(x)
    }

    with_token! {
        fn splat(x: f32) -> v128 { f32x4_splat(x) }
        fn add(a: v128, b: v128) -> v128 { f32x4_add(a, b) }
        fn sub(a: v128, b: v128) -> v128 { f32x4_sub(a, b) }
        fn mul(a: v128, b: v128) -> v128 { f32x4_mul(a, b) }
        fn div(a: v128, b: v128) -> v128 { f32x4_div(a, b) }
        fn fma(a: v128, b: v128, c: v128) -> v128 { multiply_add(a, b, c) }
        fn min(a: v128, b: v128) -> v128 { smaller(a, b) }
        fn max(a: v128, b: v128) -> v128 { larger(a, b) }
        fn abs(a: v128) -> v128 { f32x4_abs(a) }
        fn neg(a: v128) -> v128 { f32x4_neg(a) }
        fn sqrt(a: v128) -> v128 { f32x4_sqrt(a) }
        fn floor(a: v128) -> v128 { f32x4_floor(a) }
        fn ceil(a: v128) -> v128 { f32x4_ceil(a) }
        fn round(a: v128) -> v128 { f32x4_nearest(a) }
        // The lowest bits of a sum with 1.5 * 2^23 count up from zero. Engines convert by some eight instructions.
        fn exp2_whole(n: v128) -> v128 {{
            let biased = f32x4_add(n, known(const { &Constant::of(12_582_912.0 + 127.0) }));
            i32x4_shl(biased, 23)
        }}
        fn less(a: v128, b: v128) -> v128 { f32x4_lt(a, b) }
        fn is_nan(a: v128) -> v128 { f32x4_ne(a, a) }
        fn select(mask: v128, yes: v128, no: v128) -> v128 { v128_bitselect(yes, no, mask) }
        fn sum(a: v128) -> f32 {{
            let b = f32x4_add(a, i32x4_shuffle::<2, 3, 0, 1>(a, a));
            f32x4_extract_lane::<0>(b) + f32x4_extract_lane::<1>(b)
        }}
        fn largest(a: v128) -> f32 {{
            let b = larger(a, i32x4_shuffle::<2, 3, 0, 1>(a, a));
            f32x4_extract_lane::<0>(larger(b, i32x4_shuffle::<1, 0, 3, 2>(b, b)))
        }}
    }

    with_memory! {
        unsafe fn load(p: *const f32) -> v128 { v128_load(p.cast()) }
        unsafe fn store(p: *mut f32, v: v128) { v128_store(p.cast(), v) }
        // There are no shifts by a vector: each number is converted where it stands, and divided by its place.
        unsafe fn load_u2(p: *const u8) -> v128 {{
            f32x4_mul(Wasm.load_placed::<2>(p), f32x4(1.0, 1.0 / 4.0, 1.0 / 16.0, 1.0 / 64.0))
        }}
        unsafe fn load_u4(p: *const u8) -> v128 {{
            let places = f32x4(1.0, 1.0 / 16.0, 1.0 / 256.0, 1.0 / 4096.0);
            f32x4_mul(Wasm.load_placed::<4>(p), places)
        }}
        unsafe fn load_u8(p: *const u8) -> v128 {{
            let bytes = v128_load32_zero(p.cast());
            f32x4_convert_i32x4(u32x4_extend_low_u16x8(u16x8_extend_low_u8x16(bytes)))
        }}
        // There is no such conversion: exponents become those of `float32` by an addition, of subnormal numbers in a place
        // where they are normal, and of what is not finite by setting every bit.
        unsafe fn load_f16(p: *const u16) -> v128 {{
            let each = u32x4_extend_low_u16x8(v128_load64_zero(p.cast()));
            let sign = i32x4_shl(v128_and(each, i32x4_splat(0x8000)), 16);
            let size = i32x4_shl(v128_and(each, i32x4_splat(0x7fff)), 13);
            let normal = i32x4_add(size, i32x4_splat(112 << 23));
            let small = i32x4_add(size, i32x4_splat(113 << 23));
            let small = f32x4_sub(small, i32x4_splat(113 << 23));
            let finite = v128_bitselect(small, normal, i32x4_lt(size, i32x4_splat(1 << 23)));
            let infinite = i32x4_ge(size, i32x4_splat(31 << 23));
            v128_or(v128_or(finite, sign), v128_and(infinite, i32x4_splat(255 << 23)))
        }}
        unsafe fn load_bf16(p: *const u16) -> v128 {
            i32x4_shl(u32x4_extend_low_u16x8(v128_load64_zero(p.cast())), 16)
        }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: *const f32, n: usize) -> v128 {
        // SAFETY: `p` is valid for reads of `n` elements, and each arm reads so many.
        unsafe {
            match n {
                1 => v128_load32_zero(p.cast()),
                2 => v128_load64_zero(p.cast()),
                3 => v128_load32_lane::<2>(v128_load64_zero(p.cast()), p.add(2).cast()),
                _ => v128_load(p.cast()),
            }
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, v: v128, n: usize) {
        // SAFETY: `p` is valid for writes of `n` elements, and each arm writes so many.
        unsafe {
            match n {
                1 => v128_store32_lane::<0>(v, p.cast()),
                2 => v128_store64_lane::<0>(v, p.cast()),
                3 => {
                    v128_store64_lane::<0>(v, p.cast());
                    v128_store32_lane::<2>(v, p.add(2).cast());
                }
                _ => v128_store(p.cast(), v),
            }
        }
    }
}
