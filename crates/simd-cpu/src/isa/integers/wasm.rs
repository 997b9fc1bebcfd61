//! WebAssembly simd128.

use std::arch::wasm32::*;

#[cfg(target_feature = "relaxed-simd")]
use super::fours::{DotFours, InFours};
use super::{Integers, Rescale};
use crate::isa::{with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Wasm;

/// Four sums, scaled.
#[inline(always)]
fn scaled(sums: &[i32], multipliers: &[i32], right: u32) -> v128 {
    let load = |x: &[i32]| {
        let four: &[i32; 4] = x.first_chunk().unwrap_or(&[0; 4]);
        // SAFETY: there are four.
        unsafe { v128_load(four.as_ptr().cast()) }
    };
    let (x, m) = (load(sums), load(multipliers));
    let nudge = i64x2_splat(1 << 30);
    // The lower bits, which are all that is wanted, are the same with and without the sign.
    let doubled = |product: v128| u64x2_shr(i64x2_add(product, nudge), 31);
    let high = i32x4_shuffle::<0, 2, 4, 6>(
        doubled(i64x2_extmul_low_i32x4(x, m)),
        doubled(i64x2_extmul_high_i32x4(x, m)),
    );
    // Halves go away from zero. No number is the smallest one, which would wrap when one is subtracted.
    let twice = i32x4_shr(i32x4_add(high, i32x4_shr(high, 31)), right - 1);
    i32x4_sub(twice, i32x4_shr(twice, 1))
}

/// Sixteen sums as bytes.
#[inline(always)]
fn rescaled(by: &Rescale, sums: &[i32], multipliers: &[i32], to: &mut [u8; Rescale::BLOCK]) {
    let pair = |i: usize| {
        let four = |i: usize| scaled(&sums[i..], &multipliers[i..], by.right);
        // What does not fit lies beyond the range.
        i16x8_add_sat(
            i16x8_narrow_i32x4(four(i), four(i + 4)),
            i16x8_splat(by.zero),
        )
    };
    let (first, second) = (pair(0), pair(8));
    let [low, high] = by.range.map(|bound| i8x16_splat(bound as i8));
    let bytes = if by.range[0] < 0 {
        i8x16_min(i8x16_max(i8x16_narrow_i16x8(first, second), low), high)
    } else {
        u8x16_min(u8x16_max(u8x16_narrow_i16x8(first, second), low), high)
    };
    // SAFETY: there are sixteen.
    unsafe { v128_store(to.as_mut_ptr().cast(), bytes) }
}

/// Whether this machine takes the second factors of its products of bytes, which may have seven bits, for signed bytes
/// or for unsigned ones; none if it does neither exactly. The first answer stays: kernels agree on it.
#[cfg(target_feature = "relaxed-simd")]
pub(super) fn signed_data() -> Option<bool> {
    static ANSWER: std::sync::OnceLock<Option<bool>> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(probe)
}

#[cfg(target_feature = "relaxed-simd")]
fn probe() -> Option<bool> {
    use std::hint::black_box;
    let sum = |weight: i8, data: u8| {
        let (weights, data) = (i8x16_splat(weight), u8x16_splat(data));
        let zero = i32x4_splat(0);
        let sums = i32x4_relaxed_dot_i8x16_i7x16_add(black_box(weights), black_box(data), zero);
        i32x4_extract_lane::<0>(sums)
    };
    let like = |data: fn(u8) -> i32| {
        let weights = [-128i8, -1, 127];
        weights.into_iter().all(|w| {
            let exact = |x: u8| sum(w, x) == 4 * i32::from(w) * data(x);
            [127, 128, 255].into_iter().all(exact)
        })
    };
    match (like(i32::from), like(|x| i32::from(x as i8))) {
        (true, _) => Some(false),
        (false, signed) => signed.then_some(true),
    }
}

#[cfg(target_feature = "relaxed-simd")]
impl DotFours for Wasm {
    #[inline(always)]
    fn dot_fours(_: InFours<Wasm>, a: v128, b: v128, sum: v128) -> v128 {
        i32x4_relaxed_dot_i8x16_i7x16_add(b, a, sum)
    }
}

impl Integers for Wasm {
    const LANES: usize = 4;
    const TILE_ROWS: usize = 4;
    const TILE_VECTORS: usize = 3;
    // Browsers have 15 registers of x86. A product takes one, three columns three, and a row one.
    const TILE_SUMS: usize = 9;
    type V = v128;

    with_token! {
        fn splat(x: i32) -> v128 { i32x4_splat(x) }
        fn add(a: v128, b: v128) -> v128 { i32x4_add(a, b) }
        fn dot(a: v128, b: v128, sum: v128) -> v128 { i32x4_add(sum, i32x4_dot_i16x8(a, b)) }
    }

    with_memory! {
        unsafe fn load(p: *const i32) -> v128 { v128_load(p.cast()) }
        unsafe fn load_words(p: *const i16) -> v128 { i32x4_load_extend_i16x4(p) }
        unsafe fn store(p: *mut i32, v: v128) { v128_store(p.cast(), v) }
    }

    #[inline(always)]
    fn rescale(self, by: &Rescale, sums: &[i32], to: &mut [u8]) -> bool {
        const BLOCK: usize = Rescale::BLOCK;
        let (mut channel, step) = (0, BLOCK % by.channels.max(1));
        for (sums, to) in sums.chunks(BLOCK).zip(to.chunks_mut(BLOCK)) {
            let multipliers = &by.multipliers[channel..][..BLOCK];
            match (<&[i32; BLOCK]>::try_from(sums), to.try_into()) {
                (Ok(sums), Ok(to)) => rescaled(by, sums, multipliers, to),
                _ => {
                    let (mut whole, mut bytes) = ([0; BLOCK], [0; BLOCK]);
                    whole[..sums.len()].copy_from_slice(sums);
                    rescaled(by, &whole, multipliers, &mut bytes);
                    to.copy_from_slice(&bytes[..to.len()]);
                }
            }
            channel += step;
            if channel >= by.channels {
                channel -= by.channels;
            }
        }
        true
    }
}
