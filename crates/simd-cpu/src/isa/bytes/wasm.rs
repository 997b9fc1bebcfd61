//! WebAssembly simd128; with the feature `relaxed-simd`, its products of bytes where they are exact.

use std::arch::wasm32::*;

use super::Bytes;
use crate::isa::wasm::Wasm as Floats;
use crate::isa::{with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Wasm;

/// Adds products of bytes to sums. Weights of at most seven bits are the same signed and not, and pairs of products
/// with weights of at most four bits fit in 16 bits: every machine then gives the same sum.
#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn dot_narrow(w: v128, a: v128, sum: v128) -> v128 {
    i32x4_relaxed_dot_i8x16_i7x16_add(a, w, sum)
}
#[cfg(not(target_feature = "relaxed-simd"))]
#[inline(always)]
fn dot_narrow(w: v128, a: v128, sum: v128) -> v128 {
    dot(w, a, sum)
}

#[inline(always)]
fn dot(w: v128, a: v128, sum: v128) -> v128 {
    let (low, even) = (v128_and(w, i16x8_splat(255)), i16x8_shr(i16x8_shl(a, 8), 8));
    let (high, odd) = (u16x8_shr(w, 8), i16x8_shr(a, 8));
    let products = i32x4_add(i32x4_dot_i16x8(low, even), i32x4_dot_i16x8(high, odd));
    i32x4_add(sum, products)
}

/// [`Bytes::spread`] of several floats.
///
/// # Safety
/// `p` is valid for reads of `count` elements, at least one.
#[inline(never)]
unsafe fn spread_parts(p: *const f32, count: usize, each: usize) -> v128 {
    let mut lanes = [0.0f32; 4];
    for (i, lanes) in lanes.chunks_mut(each).take(count).enumerate() {
        // SAFETY: `p` has `count` elements.
        lanes.fill(unsafe { p.add(i).read() });
    }
    f32x4(lanes[0], lanes[1], lanes[2], lanes[3])
}

impl Bytes for Wasm {
    type Floats = Floats;
    type V = v128;
    const TILE_ROWS: usize = 2;

    #[inline(always)]
    fn floats(self) -> Floats {
        Floats
    }
    #[inline(always)]
    fn number<const BITS: usize>(self, packed: v128, i: usize) -> v128 {
        if BITS == 8 {
            return packed;
        }
        let shifted = u32x4_shr(packed, (i * BITS) as u32);
        v128_and(shifted, u8x16_splat(u8::MAX >> (8 - BITS)))
    }
    #[inline(always)]
    fn dot<const BITS: usize>(self, w: v128, a: v128, sum: v128) -> v128 {
        match BITS {
            0..=4 => dot_narrow(w, a, sum),
            _ => dot(w, a, sum),
        }
    }

    #[inline(always)]
    unsafe fn spread(self, p: *const f32, count: usize, each: usize) -> v128 {
        match each {
            // SAFETY: `p` has an element.
            4 => unsafe { v128_load32_splat(p.cast()) },
            // SAFETY: the contract is the same.
            _ => unsafe { spread_parts(p, count, each) },
        }
    }

    with_token! {
        fn splat(x: i32) -> v128 { i32x4_splat(x) }
        fn real(sums: v128) -> v128 { f32x4_convert_i32x4(sums) }
    }

    with_memory! {
        unsafe fn load(p: *const u8) -> v128 { v128_load(p.cast()) }
    }
}
