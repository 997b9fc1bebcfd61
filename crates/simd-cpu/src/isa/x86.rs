//! x86-64: AVX2 with FMA, and AVX-512.

use std::arch::x86_64::*;

use super::{Simd, Task, with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Avx2(());
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// # Safety
/// The machine has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn run_avx2<T: Task>(task: T) -> T::Output {
    task.run(Avx2(()))
}

/// # Safety
/// The machine has AVX-512F, AVX2 and FMA.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) unsafe fn run_avx512<T: Task>(task: T) -> T::Output {
    task.run(Avx512(()))
}

impl Avx2 {
    /// # Safety
    /// The machine has AVX2 and FMA.
    #[inline(always)]
    pub(super) unsafe fn new() -> Avx2 {
        Avx2(())
    }

    with_token! {
        fn first(n: usize) -> __m256i {
            _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
        }
    }
}

impl Simd for Avx2 {
    const LANES: usize = 8;
    const TILE_ROWS: usize = 6;
    const TILE_VECTORS: usize = 2;
    const PREFETCHES: bool = true;
    type V = __m256;
    type Mask = __m256;

    #[inline(always)]
    fn prefetch(self, p: *const u8) {
        // SAFETY: every address may be asked for.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }

    with_token! {
        fn splat(x: f32) -> __m256 { _mm256_set1_ps(x) }
        fn add(a: __m256, b: __m256) -> __m256 { _mm256_add_ps(a, b) }
        fn sub(a: __m256, b: __m256) -> __m256 { _mm256_sub_ps(a, b) }
        fn mul(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        fn div(a: __m256, b: __m256) -> __m256 { _mm256_div_ps(a, b) }
        fn fma(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        fn min(a: __m256, b: __m256) -> __m256 { _mm256_min_ps(b, a) }
        fn max(a: __m256, b: __m256) -> __m256 { _mm256_max_ps(b, a) }
        fn abs(a: __m256) -> __m256 { _mm256_andnot_ps(_mm256_set1_ps(-0.0), a) }
        fn neg(a: __m256) -> __m256 { _mm256_xor_ps(_mm256_set1_ps(-0.0), a) }
        fn sqrt(a: __m256) -> __m256 { _mm256_sqrt_ps(a) }
        fn floor(a: __m256) -> __m256 { _mm256_floor_ps(a) }
        fn ceil(a: __m256) -> __m256 { _mm256_ceil_ps(a) }
        fn round(a: __m256) -> __m256 {
            _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a)
        }
        fn exp2_whole(n: __m256) -> __m256 {
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(
                _mm256_cvtps_epi32(n),
                _mm256_set1_epi32(127),
            )))
        }
        fn less(a: __m256, b: __m256) -> __m256 { _mm256_cmp_ps::<_CMP_LT_OQ>(a, b) }
        fn is_nan(a: __m256) -> __m256 { _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a) }
        fn select(mask: __m256, yes: __m256, no: __m256) -> __m256 { _mm256_blendv_ps(no, yes, mask) }
        fn sum(a: __m256) -> f32 {{
            let b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let c = _mm_add_ps(b, _mm_movehl_ps(b, b));
            _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)))
        }}
        fn largest(a: __m256) -> f32 {{
            let b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let c = _mm_max_ps(b, _mm_movehl_ps(b, b));
            _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)))
        }}
    }

    with_memory! {
        unsafe fn load(p: *const f32) -> __m256 { _mm256_loadu_ps(p) }
        unsafe fn store(p: *mut f32, v: __m256) { _mm256_storeu_ps(p, v) }
        unsafe fn load_u2(p: *const u8) -> __m256 {{
            let all = _mm256_set1_epi32(p.cast::<u16>().read_unaligned().into());
            let each = _mm256_srlv_epi32(all, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
            _mm256_cvtepi32_ps(_mm256_and_si256(each, _mm256_set1_epi32(3)))
        }}
        unsafe fn load_u4(p: *const u8) -> __m256 {{
            let all = _mm256_set1_epi32(p.cast::<i32>().read_unaligned());
            let each = _mm256_srlv_epi32(all, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
            _mm256_cvtepi32_ps(_mm256_and_si256(each, _mm256_set1_epi32(15)))
        }}
        unsafe fn load_u8(p: *const u8) -> __m256 {
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(p.cast())))
        }
        unsafe fn load_f16(p: *const u16) -> __m256 {
            _mm256_cvtph_ps(_mm_loadu_si128(p.cast()))
        }
        unsafe fn load_bf16(p: *const u16) -> __m256 {{
            let each = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(each))
        }}
    }
    #[inline(always)]
    unsafe fn load_part(self, p: *const f32, n: usize) -> __m256 {
        // SAFETY: only the first `n` elements are touched.
        unsafe { _mm256_maskload_ps(p, self.first(n)) }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, v: __m256, n: usize) {
        // SAFETY: only the first `n` elements are touched.
        unsafe { _mm256_maskstore_ps(p, self.first(n), v) }
    }
}

impl Avx512 {
    /// # Safety
    /// The machine has AVX-512F, AVX2 and FMA.
    #[inline(always)]
    pub(super) unsafe fn new() -> Avx512 {
        Avx512(())
    }
}

impl Simd for Avx512 {
    const LANES: usize = 16;
    const TILE_ROWS: usize = 12;
    const TILE_VECTORS: usize = 2;
    const PREFETCHES: bool = true;
    type V = __m512;
    type Mask = __mmask16;

    #[inline(always)]
    fn prefetch(self, p: *const u8) {
        // SAFETY: every address may be asked for.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }

    with_token! {
        fn splat(x: f32) -> __m512 { _mm512_set1_ps(x) }
        fn add(a: __m512, b: __m512) -> __m512 { _mm512_add_ps(a, b) }
        fn sub(a: __m512, b: __m512) -> __m512 { _mm512_sub_ps(a, b) }
        fn mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn div(a: __m512, b: __m512) -> __m512 { _mm512_div_ps(a, b) }
        fn fma(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn min(a: __m512, b: __m512) -> __m512 { _mm512_min_ps(b, a) }
        fn max(a: __m512, b: __m512) -> __m512 { _mm512_max_ps(b, a) }
        fn abs(a: __m512) -> __m512 { _mm512_abs_ps(a) }
        fn neg(a: __m512) -> __m512 {
            _mm512_castsi512_ps(_mm512_xor_epi32(_mm512_castps_si512(a), _mm512_set1_epi32(i32::MIN)))
        }
        fn sqrt(a: __m512) -> __m512 { _mm512_sqrt_ps(a) }
        fn floor(a: __m512) -> __m512 {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a)
        }
        fn ceil(a: __m512) -> __m512 {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(a)
        }
        fn round(a: __m512) -> __m512 {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a)
        }
        fn exp2_whole(n: __m512) -> __m512 {
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_add_epi32(
                _mm512_cvtps_epi32(n),
                _mm512_set1_epi32(127),
            )))
        }
        fn less(a: __m512, b: __m512) -> __mmask16 { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b) }
        fn is_nan(a: __m512) -> __mmask16 { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a) }
        fn select(mask: __mmask16, yes: __m512, no: __m512) -> __m512 {
            _mm512_mask_blend_ps(mask, no, yes)
        }
        fn sum(a: __m512) -> f32 { _mm512_reduce_add_ps(a) }
        fn largest(a: __m512) -> f32 {{
            let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(a));
            let halves = _mm256_max_ps(_mm512_castps512_ps256(a), _mm256_castpd_ps(high));
            Avx2(()).largest(halves)
        }}
    }

    with_memory! {
        unsafe fn load(p: *const f32) -> __m512 { _mm512_loadu_ps(p) }
        unsafe fn store(p: *mut f32, v: __m512) { _mm512_storeu_ps(p, v) }
        // Only the first `n` elements are touched.
        unsafe fn load_part(p: *const f32, n: usize) -> __m512 {
            _mm512_maskz_loadu_ps(0xffff >> (16 - n), p)
        }
        unsafe fn store_part(p: *mut f32, v: __m512, n: usize) {
            _mm512_mask_storeu_ps(p, 0xffff >> (16 - n), v)
        }
        unsafe fn load_u2(p: *const u8) -> __m512 {{
            let shifts = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let all = _mm512_set1_epi32(p.cast::<i32>().read_unaligned());
            let each = _mm512_srlv_epi32(all, shifts);
            _mm512_cvtepi32_ps(_mm512_and_si512(each, _mm512_set1_epi32(3)))
        }}
        unsafe fn load_u4(p: *const u8) -> __m512 {{
            let shifts = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
            let low = _mm512_set1_epi32(p.cast::<i32>().read_unaligned());
            let all = _mm512_mask_set1_epi32(low, 0xff00, p.cast::<i32>().add(1).read_unaligned());
            // The lowest four bits of each lane choose.
            let each = _mm512_srlv_epi32(all, shifts);
            let numbers = _mm512_setr_ps(
                0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
            );
            _mm512_permutexvar_ps(each, numbers)
        }}
        unsafe fn load_u8(p: *const u8) -> __m512 {
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast())))
        }
        unsafe fn load_f16(p: *const u16) -> __m512 {
            _mm512_cvtph_ps(_mm256_loadu_si256(p.cast()))
        }
        unsafe fn load_bf16(p: *const u16) -> __m512 {{
            let each = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(each))
        }}
    }
}
