//! WebAssembly simd128.

use std::arch::wasm32::*;

#[cfg(target_feature = "relaxed-simd")]
use super::fours::{DotFours, InFours, weave_bytes};
#[cfg(target_feature = "relaxed-simd")]
use super::sum_of;
use super::{Integers, RESULTS, Rescale, Round, weave_words};
use crate::isa::wasm::known;
use crate::isa::{Constant, with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Wasm;

/// Results of products as bytes, signed or not: vectors that are the same for all of them.
#[derive(Clone, Copy)]
struct Results<const SIGNED: bool> {
    round: v128,
    /// What makes numbers of the bits of what is rounded.
    offset: v128,
    zero: v128,
    low: v128,
    high: v128,
}

impl<const SIGNED: bool> Results<SIGNED> {
    #[inline(always)]
    fn of(by: &Round) -> Self {
        // The bits of a small number with this, 1.5 * 2^23, added to it count up from those of the latter.
        let round = known(const { &Constant::of(12_582_912.0) });
        let [low, high] = by.range.map(|bound| i8x16_splat(bound as i8));
        Results {
            round,
            offset: i32x4_neg(round),
            zero: i16x8_splat(by.zero),
            low,
            high,
        }
    }

    /// Four products rounded to the nearest numbers.
    #[inline(always)]
    fn nearest(self, x: v128) -> v128 {
        i32x4_add(f32x4_add(x, self.round), self.offset)
    }

    /// Sixteen numbers as bytes, saturating.
    #[inline(always)]
    fn bytes(self, [a, b, c, d]: [v128; 4]) -> v128 {
        // An intrinsic between them keeps LLVM from making other instructions of the narrowing ones.
        let words = |a, b| i16x8_add_sat(i16x8_narrow_i32x4(a, b), self.zero);
        let (first, second) = (words(a, b), words(c, d));
        if SIGNED {
            let bytes = i8x16_narrow_i16x8(first, second);
            i8x16_min(i8x16_max(bytes, self.low), self.high)
        } else {
            let bytes = u8x16_narrow_i16x8(first, second);
            u8x16_min(u8x16_max(bytes, self.low), self.high)
        }
    }

    #[inline(always)]
    fn round(self, by: &Round, sums: &[i32], to: &mut [u8]) {
        let factors = first_of(by.channels, by.factors);
        each_results(by.channels, sums, to, |channel, sums| {
            let factors = factors.wrapping_add(channel);
            // SAFETY: there are as many of both, the factors behind each channel's.
            let four = |i: usize| self.nearest(unsafe { products(sums.add(i), factors.add(i)) });
            self.bytes([0, 4, 8, 12].map(four))
        });
    }

    #[inline(always)]
    fn rescale(
        self,
        by: &Rescale,
        exact: &impl Fn(usize, i32) -> i32,
        sums: &[i32],
        to: &mut [u8],
    ) {
        let sign = known(const { &Constant::of(-0.0) });
        // Bits of positive numbers are in their order. Of comparisons of floats LLVM makes relaxed instructions.
        let most = known(const { &Constant::of(0.5 - Rescale::DOUBT) });
        let channels = by.round.channels;
        let (factors, nudges) = (
            first_of(channels, by.round.factors),
            first_of(channels, by.nudges),
        );
        each_results(channels, sums, to, |channel, sums| {
            let (factors, nudges) = (factors.wrapping_add(channel), nudges.wrapping_add(channel));
            let mut doubt = i32x4_splat(0);
            let numbers = [0, 4, 8, 12].map(|i| {
                // SAFETY: there are as many of all of them, those that are not sums behind each channel's.
                let (x, nudge) = unsafe {
                    (
                        products(sums.add(i), factors.add(i)),
                        v128_load(nudges.add(i).cast()),
                    )
                };
                let x = f32x4_add(x, v128_or(v128_and(x, sign), nudge));
                let bits = f32x4_add(x, self.round);
                let off = f32x4_sub(x, f32x4_sub(bits, self.round));
                doubt = i32x4_max(doubt, v128_andnot(off, sign));
                i32x4_add(bits, self.offset)
            });
            match v128_any_true(i32x4_gt(doubt, most)) {
                // SAFETY: there are as many.
                true => exactly(exact, &by.round, channel, unsafe { &*sums.cast() }),
                false => self.bytes(numbers),
            }
        });
    }
}

/// Where numbers begin that are there for results from each channel on.
#[inline(always)]
fn first_of(channels: usize, numbers: &[f32]) -> *const f32 {
    numbers[..channels + RESULTS - 1].as_ptr()
}

/// Four sums times factors.
///
/// # Safety
/// Both are valid for reads of four elements.
#[inline(always)]
unsafe fn products(sums: *const i32, factors: *const f32) -> v128 {
    // SAFETY: the contract.
    let (sums, factors) = unsafe { (v128_load(sums.cast()), v128_load(factors.cast())) };
    f32x4_mul(f32x4_convert_i32x4(sums), factors)
}

/// Sixteen results, one by one.
#[cold]
#[inline(never)]
fn exactly(
    exact: &dyn Fn(usize, i32) -> i32,
    by: &Round,
    channel: usize,
    sums: &[i32; RESULTS],
) -> v128 {
    let mut bytes = [0u8; RESULTS];
    let [low, high] = by.range.map(i32::from);
    for (i, (byte, sum)) in bytes.iter_mut().zip(sums).enumerate() {
        let number = exact((channel + i) % by.channels, *sum).saturating_add(by.zero.into());
        *byte = number.max(low).min(high) as u8;
    }
    // SAFETY: there are sixteen.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}

/// Writes what becomes of sixteen sums each, whose first channel is said.
#[inline(always)]
fn each_results(
    channels: usize,
    sums: &[i32],
    to: &mut [u8],
    of: impl Fn(usize, *const i32) -> v128,
) {
    let (mut channel, step) = (0, RESULTS % channels.max(1));
    let to = &mut to[..sums.len()];
    let whole = sums.len() - sums.len() % RESULTS;
    for first in (0..whole).step_by(RESULTS) {
        // SAFETY: sixteen are there of both.
        unsafe {
            let bytes = of(channel, sums.as_ptr().add(first));
            v128_store(to.as_mut_ptr().add(first).cast(), bytes);
        }
        channel += step;
        if channel >= channels {
            channel -= channels;
        }
    }
    let mut rest = [0; RESULTS];
    rest[..sums.len() - whole].copy_from_slice(&sums[whole..]);
    let mut bytes = [0u8; RESULTS];
    // SAFETY: there are sixteen.
    unsafe { v128_store(bytes.as_mut_ptr().cast(), of(channel, rest.as_ptr())) };
    to[whole..].copy_from_slice(&bytes[..sums.len() - whole]);
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
    fn sum_data(token: InFours<Wasm>, bytes: &[u8], signed: bool) -> i32 {
        let ones = i8x16_splat(1);
        let (mut sum, mut left) = (i32x4_splat(0), bytes);
        while let Some((p, rest)) = left.split_first_chunk::<16>() {
            // SAFETY: there are sixteen.
            sum = Wasm::dot_fours(token, unsafe { v128_load(p.as_ptr().cast()) }, ones, sum);
            left = rest;
        }
        if let Some((p, rest)) = left.split_first_chunk::<8>() {
            // SAFETY: there are eight.
            let some = unsafe { v128_load64_zero(p.as_ptr().cast()) };
            sum = Wasm::dot_fours(token, some, ones, sum);
            left = rest;
        }
        if let Some((p, rest)) = left.split_first_chunk::<4>() {
            // SAFETY: there are four.
            let some = unsafe { v128_load32_zero(p.as_ptr().cast()) };
            sum = Wasm::dot_fours(token, some, ones, sum);
            left = rest;
        }
        let pairs = i32x4_add(sum, i32x4_shuffle::<2, 3, 0, 1>(sum, sum));
        let all = i32x4_add(pairs, i32x4_shuffle::<1, 0, 3, 2>(pairs, pairs));
        sum_of(left, signed).wrapping_add(i32x4_extract_lane::<0>(all))
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
    fn rescale(
        self,
        by: &Rescale,
        exact: impl Fn(usize, i32) -> i32,
        sums: &[i32],
        to: &mut [u8],
    ) -> bool {
        match by.round.range[0] < 0 {
            true => Results::<true>::of(&by.round).rescale(by, &exact, sums, to),
            false => Results::<false>::of(&by.round).rescale(by, &exact, sums, to),
        }
        true
    }

    #[inline(always)]
    fn round(self, by: &Round, sums: &[i32], to: &mut [u8]) -> bool {
        match by.range[0] < 0 {
            true => Results::<true>::of(by).round(by, sums, to),
            false => Results::<false>::of(by).round(by, sums, to),
        }
        true
    }
}
