//! Vectors of `i32` and products of pairs of `i16`: what sums of quantised products are made of. All
//! of it is exact, but that sums wrap, so that results are the same on every instruction set. (The
//! products of eight bits that some machines have saturate, and those of relaxed SIMD may.)

use super::{Isa, Kind, with_token};

/// As [`super::Simd`], for integers.
pub(crate) trait Pairs: Copy + 'static {
    /// Elements of a vector: `i32`, or pairs of `i16`.
    const LANES: usize;
    /// Rows of the tile that fills the register file; at most 12.
    const TILE_ROWS: usize;
    /// Vectors of a row of that tile; at most 2.
    const TILE_VECTORS: usize;
    type V: Copy;

    fn splat(self, x: i32) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `sum + a.0 * b.0 + a.1 * b.1` for each pair.
    fn dot(self, a: Self::V, b: Self::V, sum: Self::V) -> Self::V;
    /// # Safety
    /// `p` is valid for reads of `LANES` elements.
    unsafe fn load(self, p: *const i32) -> Self::V;
    /// `LANES` numbers, each widened: the first of a pair.
    /// # Safety
    /// `p` is valid for reads of `LANES` elements.
    unsafe fn load_words(self, p: *const i16) -> Self::V;
    /// # Safety
    /// `p` is valid for writes of `LANES` elements.
    unsafe fn store(self, p: *mut i32, v: Self::V);
}

/// A computation on integers that is compiled for each instruction set.
pub(crate) trait PairTask {
    type Output;
    /// Implementations are `#[inline(always)]`.
    fn run<P: Pairs>(self, p: P) -> Self::Output;
}

struct Sizes;

impl PairTask for Sizes {
    type Output = (usize, usize);

    #[inline(always)]
    fn run<P: Pairs>(self, _: P) -> (usize, usize) {
        (P::LANES, P::TILE_VECTORS)
    }
}

impl Isa {
    /// Elements of a vector of integers, and vectors of a row of a tile.
    pub(crate) fn pair_sizes(self) -> (usize, usize) {
        self.dispatch_pairs(Sizes)
    }

    /// Runs a task on integers, compiled for this instruction set.
    #[inline]
    pub(crate) fn dispatch_pairs<T: PairTask>(self, task: T) -> T::Output {
        match self.0 {
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Kind::Portable => task.run(Portable),
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

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[derive(Clone, Copy)]
struct Portable;

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
impl Pairs for Portable {
    const LANES: usize = 4;
    const TILE_ROWS: usize = 4;
    const TILE_VECTORS: usize = 2;
    type V = [i32; 4];

    #[inline(always)]
    fn splat(self, x: i32) -> [i32; 4] {
        [x; 4]
    }
    #[inline(always)]
    fn add(self, a: [i32; 4], b: [i32; 4]) -> [i32; 4] {
        std::array::from_fn(|i| a[i].wrapping_add(b[i]))
    }
    #[inline(always)]
    fn dot(self, a: [i32; 4], b: [i32; 4], sum: [i32; 4]) -> [i32; 4] {
        std::array::from_fn(|i| {
            let low = i32::from(a[i] as i16) * i32::from(b[i] as i16);
            let high = (a[i] >> 16) * (b[i] >> 16);
            sum[i].wrapping_add(low.wrapping_add(high))
        })
    }
    #[inline(always)]
    unsafe fn load(self, p: *const i32) -> [i32; 4] {
        // SAFETY: the caller's promise.
        unsafe { p.cast::<[i32; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_words(self, p: *const i16) -> [i32; 4] {
        // SAFETY: the caller's promise.
        unsafe { p.cast::<[i16; 4]>().read_unaligned() }.map(i32::from)
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut i32, v: [i32; 4]) {
        // SAFETY: the caller's promise.
        unsafe { p.cast::<[i32; 4]>().write_unaligned(v) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{PairTask, Pairs, with_token};

    #[derive(Clone, Copy)]
    pub struct Avx2(());
    #[derive(Clone, Copy)]
    pub struct Vnni(());

    /// # Safety
    /// The machine has AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn run_avx2<T: PairTask>(task: T) -> T::Output {
        task.run(Avx2(()))
    }

    /// # Safety
    /// The machine has AVX-512F and AVX-512VNNI.
    #[target_feature(enable = "avx512f,avx512vnni,avx2")]
    pub unsafe fn run_vnni<T: PairTask>(task: T) -> T::Output {
        task.run(Vnni(()))
    }

    impl Pairs for Avx2 {
        const LANES: usize = 8;
        const TILE_ROWS: usize = 6;
        const TILE_VECTORS: usize = 2;
        type V = __m256i;

        with_token! {
            fn splat(x: i32) -> __m256i { _mm256_set1_epi32(x) }
            fn add(a: __m256i, b: __m256i) -> __m256i { _mm256_add_epi32(a, b) }
            fn dot(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
                _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
            }
        }

        #[inline(always)]
        unsafe fn load(self, p: *const i32) -> __m256i {
            // SAFETY: the caller's promise, and the token.
            unsafe { _mm256_loadu_si256(p.cast()) }
        }
        #[inline(always)]
        unsafe fn load_words(self, p: *const i16) -> __m256i {
            // SAFETY: the caller's promise, and the token.
            unsafe { _mm256_cvtepi16_epi32(_mm_loadu_si128(p.cast())) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut i32, v: __m256i) {
            // SAFETY: the caller's promise, and the token.
            unsafe { _mm256_storeu_si256(p.cast(), v) }
        }
    }

    impl Pairs for Vnni {
        const LANES: usize = 16;
        const TILE_ROWS: usize = 12;
        const TILE_VECTORS: usize = 2;
        type V = __m512i;

        with_token! {
            fn splat(x: i32) -> __m512i { _mm512_set1_epi32(x) }
            fn add(a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi32(a, b) }
            fn dot(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
                _mm512_dpwssd_epi32(sum, a, b)
            }
        }

        #[inline(always)]
        unsafe fn load(self, p: *const i32) -> __m512i {
            // SAFETY: the caller's promise, and the token.
            unsafe { _mm512_loadu_si512(p.cast()) }
        }
        #[inline(always)]
        unsafe fn load_words(self, p: *const i16) -> __m512i {
            // SAFETY: the caller's promise, and the token.
            unsafe { _mm512_cvtepi16_epi32(_mm256_loadu_si256(p.cast())) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut i32, v: __m512i) {
            // SAFETY: the caller's promise, and the token.
            unsafe { _mm512_storeu_si512(p.cast(), v) }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::*;

    use super::{Pairs, with_token};

    #[derive(Clone, Copy)]
    pub struct Neon;

    impl Pairs for Neon {
        const LANES: usize = 4;
        const TILE_ROWS: usize = 8;
        const TILE_VECTORS: usize = 2;
        type V = int32x4_t;

        with_token! {
            fn splat(x: i32) -> int32x4_t { vdupq_n_s32(x) }
            fn add(a: int32x4_t, b: int32x4_t) -> int32x4_t { vaddq_s32(a, b) }
            fn dot(a: int32x4_t, b: int32x4_t, sum: int32x4_t) -> int32x4_t {{
                let (a, b) = (vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
                let low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
                vaddq_s32(sum, vpaddq_s32(low, vmull_high_s16(a, b)))
            }}
        }

        #[inline(always)]
        unsafe fn load(self, p: *const i32) -> int32x4_t {
            // SAFETY: the caller's promise.
            unsafe { vld1q_s32(p) }
        }
        #[inline(always)]
        unsafe fn load_words(self, p: *const i16) -> int32x4_t {
            // SAFETY: the caller's promise.
            unsafe { vmovl_s16(vld1_s16(p)) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut i32, v: int32x4_t) {
            // SAFETY: the caller's promise.
            unsafe { vst1q_s32(p, v) }
        }
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    use std::arch::wasm32::*;

    use super::{Pairs, with_token};

    #[derive(Clone, Copy)]
    pub struct Wasm;

    impl Pairs for Wasm {
        const LANES: usize = 4;
        // Browsers have 15 registers of x86, and a product takes one.
        const TILE_ROWS: usize = 4;
        const TILE_VECTORS: usize = 2;
        type V = v128;

        with_token! {
            fn splat(x: i32) -> v128 { i32x4_splat(x) }
            fn add(a: v128, b: v128) -> v128 { i32x4_add(a, b) }
            fn dot(a: v128, b: v128, sum: v128) -> v128 { i32x4_add(sum, i32x4_dot_i16x8(a, b)) }
        }

        #[inline(always)]
        unsafe fn load(self, p: *const i32) -> v128 {
            // SAFETY: the caller's promise; wasm loads need no alignment.
            unsafe { v128_load(p.cast()) }
        }
        #[inline(always)]
        unsafe fn load_words(self, p: *const i16) -> v128 {
            // SAFETY: the caller's promise.
            unsafe { i32x4_load_extend_i16x4(p) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut i32, v: v128) {
            // SAFETY: the caller's promise.
            unsafe { v128_store(p.cast(), v) }
        }
    }
}
