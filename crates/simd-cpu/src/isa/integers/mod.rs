//! Vectors of `i32` and products of pairs of `i16`, or of four bytes where the machine multiplies those: what sums of
//! quantised products are made of. All of it is exact, but that sums wrap, so that results are the same on every
//! instruction set. Products of bytes that saturate, which some machines have, are not used.

mod fours;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod portable;
#[cfg(test)]
mod tests;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use fours::Fours;

use super::{Isa, Kind};

/// The vectors of integers of one instruction set; [`super::Simd`] has those of floats.
pub(crate) trait Integers: Copy + 'static {
    /// Elements of a vector: `i32`, or groups of smaller numbers.
    const LANES: usize;
    /// Numbers of a group, which [`Integers::dot`] multiplies by as many others: two `i16`, or four bytes.
    const GROUP: usize = 2;
    /// Rows of a tile; at most 12.
    const TILE_ROWS: usize;
    /// Vectors of a row of a tile; at most 3.
    const TILE_VECTORS: usize;
    /// Vectors of sums for which there are registers.
    const TILE_SUMS: usize = Self::TILE_ROWS * Self::TILE_VECTORS;
    /// Whether [`Integers::prefetch`] does something.
    const PREFETCHES: bool = false;
    type V: Copy;

    /// Rows of a tile of this many vectors.
    #[inline(always)]
    fn tile_rows(vectors: usize) -> usize {
        (Self::TILE_SUMS / vectors).min(Self::TILE_ROWS)
    }

    /// Tells the machine that the [`LINE`](super::LINE) at `p`, if anything lies there, is wanted soon.
    #[inline(always)]
    fn prefetch(self, _: *const u8) {}

    fn splat(self, x: i32) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `sum + a.0 * b.0 + a.1 * b.1` for each pair, or the like for four bytes.
    fn dot(self, a: Self::V, b: Self::V, sum: Self::V) -> Self::V;
    /// # Safety
    /// `p` is valid for reads of `LANES` elements.
    unsafe fn load(self, p: *const i32) -> Self::V;
    /// # Safety
    /// `p` is valid for writes of `LANES` elements.
    unsafe fn store(self, p: *mut i32, v: Self::V);

    /// Lays numbers of [`Integers::GROUP`] rows, which are as long as `to`, side by side: a group has those of one place.
    #[inline(always)]
    fn weave<'a>(self, row: impl Fn(usize) -> &'a [u8], to: &mut [i32]) {
        weave_words([row(0), row(1)], to);
    }

    /// The sum of bytes, signed or not: as [`Integers::dot`] takes data, where it multiplies bytes.
    #[inline(always)]
    fn sum(self, bytes: &[u8], signed: bool) -> i32 {
        sum_of(bytes, signed)
    }

    /// Rows of sums as bytes. `exact` gives the result of a channel's sum, without the zero point. False, and nothing
    /// done, where what the compiler makes is as good.
    #[inline(always)]
    fn rescale(
        self,
        _: &Rescale,
        _exact: impl Fn(usize, i32) -> i32,
        _sums: &[i32],
        _to: &mut [u8],
    ) -> bool {
        false
    }

    /// Rows of sums as bytes. False, and nothing done, where what the compiler makes is as good.
    #[inline(always)]
    fn round(self, _: &Round, _sums: &[i32], _to: &mut [u8]) -> bool {
        false
    }
}

/// Results that [`Rescale`] and [`Round`] make together.
pub(crate) const RESULTS: usize = 16;

/// Products with `float32`, none as large as [`Round::MOST`], rounded to the nearest number, ties to even, and the way of the
/// results into bytes.
#[allow(dead_code, reason = "some builds leave it to the compiler")]
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    pub channels: usize,
    /// Factors of the channels, and from the first on again, so that [`RESULTS`] begin at each.
    pub factors: &'a [f32],
    pub zero: i16,
    /// Limits of results with their zero point: numbers of an `i8` where the first is negative, else of a
    /// `u8`.
    pub range: [i16; 2],
}

impl Round<'_> {
    /// A smaller product leaves 1.5 * 2^23 between 2^23 and 2^24, where numbers are whole.
    pub const MOST: f64 = (1u32 << 21) as f64;
}

/// Products in fixed point, [`Factor::apply`](kilim_core::fixed::Factor::apply), and the way of the results into bytes.
///
/// They are rounded twice: to whole numbers, and, once these are shifted to the right, again, halves away from zero. So a
/// result is rounded away from zero from half of such a whole number before the middle on: products in `float32` are moved
/// away from zero by as much, and rounded once.
#[allow(dead_code, reason = "some builds leave it to the compiler")]
pub(crate) struct Rescale<'a> {
    /// What they are in `float32`, but for what is rounded.
    pub round: Round<'a>,
    /// Half of what a shift to the right makes of one, or zero where none is shifted; as many as there are factors.
    pub nudges: &'a [f32],
}

impl Rescale<'_> {
    /// Products nearer than this to the middle between two numbers may have been rounded to the wrong one. Those that are no
    /// larger than 2^9, and beyond it none is in the range, are off by three parts of 2^24, and by half of a unit in
    /// the last place of a nudged one: less than 2^-12.
    #[allow(dead_code, reason = "some builds leave it to the compiler")]
    pub const DOUBT: f32 = 1.0 / 4096.0;
}

/// Lays the `i16` of two rows side by side.
#[inline(always)]
fn weave_words(rows: [&[u8]; 2], to: &mut [i32]) {
    let [a, b] = rows.map(bytemuck::cast_slice::<u8, i16>);
    let to: &mut [[i16; 2]] = bytemuck::cast_slice_mut(to);
    for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
        *to = [a, b];
    }
}

/// The sum of bytes, signed or not.
#[inline(always)]
fn sum_of(bytes: &[u8], signed: bool) -> i32 {
    match signed {
        true => bytes
            .iter()
            .fold(0i32, |sum, &b| sum.wrapping_add((b as i8).into())),
        false => bytes
            .iter()
            .fold(0i32, |sum, &b| sum.wrapping_add(b.into())),
    }
}

/// A computation on integers that is compiled for each instruction set.
pub(crate) trait IntegerTask {
    type Output;
    /// Implementations are `#[inline(always)]`.
    fn run<P: Integers>(self, p: P) -> Self::Output;
}

struct Sizes;

impl IntegerTask for Sizes {
    type Output = (usize, usize);

    #[inline(always)]
    fn run<P: Integers>(self, _: P) -> (usize, usize) {
        (P::LANES, P::TILE_VECTORS)
    }
}

impl Isa {
    /// Elements of a vector of integers, and vectors of a row of a tile.
    pub(crate) fn integer_sizes(self) -> (usize, usize) {
        self.dispatch_integers(Sizes)
    }

    /// Runs a task on integers, compiled for this instruction set.
    #[inline]
    pub(crate) fn dispatch_integers<T: IntegerTask>(self, task: T) -> T::Output {
        match self.0 {
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Kind::Portable => task.run(portable::Portable),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 if std::is_x86_feature_detected!("avx512vnni") => {
                // SAFETY: the machine has AVX-512 by the kind, and the rest was just asked for.
                unsafe { x86::run_vnni(task) }
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: both kinds are made only where the machine has AVX2.
            Kind::Avx2 | Kind::Avx512 => unsafe { x86::run_avx2(task) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => task.run(neon::Neon),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Kind::Wasm => task.run(wasm::Wasm),
        }
    }
}
