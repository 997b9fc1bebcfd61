//! WebAssembly simd128.

use std::arch::wasm32::*;

#[cfg(target_feature = "relaxed-simd")]
use super::fours::{DotFours, InFours, weave_bytes};
use super::{Integers, RESULTS, Rescale, Round, weave_words};
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

/// Four sums times factors, rounded, with `zero` added. None is smaller than `low`.
#[inline(always)]
fn rounded(sums: &[i32], factors: &[f32], zero: i32, low: i32) -> v128 {
    // The bits of a small number with 1.5 * 2^23 added to it count up from those of the latter.
    const ROUND: f32 = 12_582_912.0;
    const BITS: i32 = ROUND.to_bits() as i32;
    let sums: &[i32; 4] = sums.first_chunk().unwrap_or(&[0; 4]);
    let factors: &[f32; 4] = factors.first_chunk().unwrap_or(&[0.0; 4]);
    // SAFETY: there are four of each.
    let (x, f) = unsafe {
        (
            v128_load(sums.as_ptr().cast()),
            v128_load(factors.as_ptr().cast()),
        )
    };
    let sum = f32x4_add(f32x4_mul(f32x4_convert_i32x4(x), f), f32x4_splat(ROUND));
    // Negative sums, which belong to very small numbers, have negative bits.
    let bits = i32x4_max(sum, i32x4_splat(low - zero + BITS));
    i32x4_add(bits, i32x4_splat(zero - BITS))
}

/// Sixteen numbers as bytes, saturating.
#[inline(always)]
fn narrowed(words: impl Fn(usize) -> v128, range: [i16; 2]) -> v128 {
    let (first, second) = (words(0), words(8));
    let [low, high] = range.map(|bound| i8x16_splat(bound as i8));
    if range[0] < 0 {
        i8x16_min(i8x16_max(i8x16_narrow_i16x8(first, second), low), high)
    } else {
        u8x16_min(u8x16_max(u8x16_narrow_i16x8(first, second), low), high)
    }
}

/// Sixteen sums as bytes.
#[inline(always)]
fn rescaled(by: &Rescale, sums: &[i32; RESULTS], multipliers: &[i32]) -> v128 {
    let words = |i: usize| {
        let four = |i: usize| scaled(&sums[i..], &multipliers[i..], by.right);
        // What does not fit lies beyond the range.
        i16x8_add_sat(
            i16x8_narrow_i32x4(four(i), four(i + 4)),
            i16x8_splat(by.zero),
        )
    };
    narrowed(words, by.range)
}

/// Writes what becomes of sixteen sums each, whose first channel is said.
#[inline(always)]
fn each_results(
    channels: usize,
    sums: &[i32],
    to: &mut [u8],
    of: impl Fn(usize, &[i32; RESULTS]) -> v128,
) {
    let (mut channel, step) = (0, RESULTS % channels.max(1));
    for (sums, to) in sums.chunks(RESULTS).zip(to.chunks_mut(RESULTS)) {
        if let (Ok(sums), Ok(to)) = (sums.try_into(), <&mut [u8; RESULTS]>::try_from(&mut *to)) {
            // SAFETY: there are sixteen.
            unsafe { v128_store(to.as_mut_ptr().cast(), of(channel, sums)) };
        } else {
            let (mut whole, mut bytes) = ([0; RESULTS], [0u8; RESULTS]);
            whole[..sums.len()].copy_from_slice(sums);
            // SAFETY: there are sixteen.
            unsafe { v128_store(bytes.as_mut_ptr().cast(), of(channel, &whole)) };
            to.copy_from_slice(&bytes[..to.len()]);
        }
        channel += step;
        if channel >= channels {
            channel -= channels;
        }
    }
}

/// The bytes of two vectors in turns.
#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn bytes_of(a: v128, b: v128) -> [v128; 2] {
    [
        i8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b),
        i8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b),
    ]
}

/// The words of two vectors in turns.
#[inline(always)]
fn words_of(a: v128, b: v128) -> [v128; 2] {
    [
        i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(a, b),
        i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(a, b),
    ]
}

/// # Safety
/// `to` is valid for writes of eight elements.
#[inline(always)]
unsafe fn put(to: *mut i32, [low, high]: [v128; 2]) {
    // SAFETY: the contract.
    unsafe {
        v128_store(to.cast(), low);
        v128_store(to.add(4).cast(), high);
    }
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

    #[inline(always)]
    fn weave_fours(rows: [&[u8]; 4], to: &mut [i32]) {
        const BLOCK: usize = 16;
        let count = to.len();
        if count < BLOCK {
            return weave_bytes(rows, to);
        }
        let rows = rows.map(|row| row[..count].as_ptr());
        for first in (0..count).step_by(BLOCK) {
            // The last ones again, where they fill no block.
            let first = first.min(count - BLOCK);
            let [a, b, c, d] = rows.map(|row| {
                // SAFETY: all rows have `count` bytes.
                unsafe { v128_load(row.add(first).cast()) }
            });
            let [ab, cd] = [bytes_of(a, b), bytes_of(c, d)];
            let to = to[first..].as_mut_ptr();
            // SAFETY: a block of elements is there.
            unsafe {
                put(to, words_of(ab[0], cd[0]));
                put(to.add(8), words_of(ab[1], cd[1]));
            }
        }
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
        unsafe fn store(p: *mut i32, v: v128) { v128_store(p.cast(), v) }
    }

    #[inline(always)]
    fn weave<'a>(self, row: impl Fn(usize) -> &'a [u8], to: &mut [i32]) {
        const BLOCK: usize = 8;
        let count = to.len();
        if count < BLOCK {
            return weave_words([row(0), row(1)], to);
        }
        let rows = [0, 1].map(|i| row(i)[..count * size_of::<i16>()].as_ptr().cast::<i16>());
        for first in (0..count).step_by(BLOCK) {
            // The last ones again, where they fill no block.
            let first = first.min(count - BLOCK);
            let [a, b] = rows.map(|row| {
                // SAFETY: both rows have `count` numbers.
                unsafe { v128_load(row.add(first).cast()) }
            });
            // SAFETY: a block of elements is there.
            unsafe { put(to[first..].as_mut_ptr(), words_of(a, b)) };
        }
    }

    #[inline(always)]
    fn rescale(self, by: &Rescale, sums: &[i32], to: &mut [u8]) -> bool {
        each_results(by.channels, sums, to, |channel, sums| {
            rescaled(by, sums, &by.multipliers[channel..][..RESULTS])
        });
        true
    }

    #[inline(always)]
    fn round(self, by: &Round, sums: &[i32], to: &mut [u8]) -> bool {
        let (zero, low) = (by.zero.into(), by.range[0].into());
        each_results(by.channels, sums, to, |channel, sums| {
            let factors = &by.factors[channel..][..RESULTS];
            let four = |i: usize| rounded(&sums[i..], &factors[i..], zero, low);
            narrowed(|i| i16x8_narrow_i32x4(four(i), four(i + 4)), by.range)
        });
        true
    }
}
