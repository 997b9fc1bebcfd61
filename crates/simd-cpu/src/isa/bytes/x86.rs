//! x86-64: AVX2, and AVX-512 with VNNI.

use std::arch::x86_64::*;

use super::{ByteTask, Bytes};
use crate::isa::x86::{Avx2 as Floats8, Avx512 as Floats16};
use crate::isa::{with_memory, with_token};

/// An instruction set with the floats of the same machine.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(Floats8);
#[derive(Clone, Copy)]
pub(crate) struct Vnni(Floats16);

/// # Safety
/// The machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run_avx2<T: ByteTask>(task: T) -> T::Output {
    // SAFETY: the machine has what the token stands for.
    task.run(Avx2(unsafe { Floats8::new() }))
}

/// # Safety
/// The machine has AVX-512F, AVX-512VNNI, AVX2 and FMA.
#[target_feature(enable = "avx512f,avx512vnni,avx2,fma")]
pub(super) unsafe fn run_vnni<T: ByteTask>(task: T) -> T::Output {
    // SAFETY: the machine has what the token stands for.
    task.run(Vnni(unsafe { Floats16::new() }))
}

impl Bytes for Avx2 {
    type Floats = Floats8;
    type V = __m256i;
    const TILE_ROWS: usize = 3;

    #[inline(always)]
    fn floats(self) -> Floats8 {
        self.0
    }
    #[inline(always)]
    fn number<const BITS: usize>(self, packed: __m256i, i: usize) -> __m256i {
        if BITS == 8 {
            return packed;
        }
        let shift = (i * BITS) as i32;
        let mask = (u8::MAX >> (8 - BITS)) as i8;
        // SAFETY: the token exists only where the machine has these instructions.
        unsafe {
            let shifted = _mm256_srl_epi32(packed, _mm_cvtsi32_si128(shift));
            _mm256_and_si256(shifted, _mm256_set1_epi8(mask))
        }
    }
    #[inline(always)]
    fn dot<const BITS: usize>(self, w: __m256i, a: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: the token exists only where the machine has these instructions.
        unsafe {
            let products = if BITS <= 4 {
                // Two products are at most 2 * 15 * 127.
                let pairs = _mm256_maddubs_epi16(w, a);
                _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
            } else {
                let low = _mm256_and_si256(w, _mm256_set1_epi16(255));
                let even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(a));
                let high = _mm256_srli_epi16::<8>(w);
                let odd = _mm256_srai_epi16::<8>(a);
                _mm256_add_epi32(_mm256_madd_epi16(low, even), _mm256_madd_epi16(high, odd))
            };
            _mm256_add_epi32(sum, products)
        }
    }
    #[inline(always)]
    unsafe fn spread(self, p: *const f32, count: usize, each: usize) -> __m256 {
        // SAFETY: only the first `count` floats are read, and the token exists only where the machine has these
        // instructions.
        unsafe {
            if each == 8 {
                return _mm256_set1_ps(p.read());
            }
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let from = _mm256_srl_epi32(lanes, _mm_cvtsi32_si128(each.trailing_zeros() as i32));
            let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lanes);
            _mm256_permutevar8x32_ps(_mm256_maskload_ps(p, mask), from)
        }
    }

    with_token! {
        fn splat(x: i32) -> __m256i { _mm256_set1_epi32(x) }
        fn real(sums: __m256i) -> __m256 { _mm256_cvtepi32_ps(sums) }
    }

    with_memory! {
        unsafe fn load(p: *const u8) -> __m256i { _mm256_loadu_si256(p.cast()) }
    }
}

impl Bytes for Vnni {
    type Floats = Floats16;
    type V = __m512i;
    const TILE_ROWS: usize = 6;

    #[inline(always)]
    fn floats(self) -> Floats16 {
        self.0
    }
    #[inline(always)]
    fn number<const BITS: usize>(self, packed: __m512i, i: usize) -> __m512i {
        if BITS == 8 {
            return packed;
        }
        let shift = (i * BITS) as i32;
        let mask = i32::from_ne_bytes([u8::MAX >> (8 - BITS); 4]);
        // SAFETY: the token exists only where the machine has these instructions.
        unsafe {
            let shifted = _mm512_srl_epi32(packed, _mm_cvtsi32_si128(shift));
            _mm512_and_si512(shifted, _mm512_set1_epi32(mask))
        }
    }
    #[inline(always)]
    fn dot<const BITS: usize>(self, w: __m512i, a: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: the token exists only where the machine has these instructions.
        unsafe { _mm512_dpbusd_epi32(sum, w, a) }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: *const u8, n: usize) -> __m512i {
        let mask = ((1u32 << (n / 4)) - 1) as __mmask16;
        // SAFETY: only the first `n` bytes are read.
        unsafe { _mm512_maskz_loadu_epi32(mask, p.cast()) }
    }
    #[inline(always)]
    unsafe fn spread(self, p: *const f32, count: usize, each: usize) -> __m512 {
        // SAFETY: only the first `count` floats are read, and the token exists only where the machine has these
        // instructions.
        unsafe {
            if each == 16 {
                return _mm512_set1_ps(p.read());
            }
            let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let from = _mm512_srl_epi32(lanes, _mm_cvtsi32_si128(each.trailing_zeros() as i32));
            let mask = ((1u32 << count.min(16)) - 1) as __mmask16;
            _mm512_permutexvar_ps(from, _mm512_maskz_loadu_ps(mask, p))
        }
    }

    with_token! {
        fn splat(x: i32) -> __m512i { _mm512_set1_epi32(x) }
        fn real(sums: __m512i) -> __m512 { _mm512_cvtepi32_ps(sums) }
    }

    with_memory! {
        unsafe fn load(p: *const u8) -> __m512i { _mm512_loadu_si512(p.cast()) }
    }
}
