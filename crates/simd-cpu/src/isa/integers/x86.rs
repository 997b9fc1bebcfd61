//! x86-64: AVX2, with AVX-VNNI where bytes are multiplied, and AVX-512 with VNNI.

use std::arch::x86_64::*;

use super::fours::{DotFours, InFours};
use super::{IntegerTask, Integers};
use crate::isa::{with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Avx2(());
#[derive(Clone, Copy)]
pub(crate) struct Vnni(());

/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run_avx2<T: IntegerTask>(task: T) -> T::Output {
    task.run(Avx2(()))
}

/// # Safety
/// The machine has AVX-512F and AVX-512VNNI.
#[target_feature(enable = "avx512f,avx512vnni,avx2")]
pub(super) unsafe fn run_vnni<T: IntegerTask>(task: T) -> T::Output {
    task.run(Vnni(()))
}

/// # Safety
/// The machine has AVX2 and AVX-VNNI.
#[target_feature(enable = "avx2,avxvnni")]
pub(super) unsafe fn run_avx_vnni<T: IntegerTask>(task: T) -> T::Output {
    // SAFETY: the machine has these products.
    task.run(unsafe { InFours::new(Avx2(())) })
}

/// # Safety
/// The machine has AVX-512F and AVX-512VNNI.
#[target_feature(enable = "avx512f,avx512vnni,avx2")]
pub(super) unsafe fn run_vnni_fours<T: IntegerTask>(task: T) -> T::Output {
    // SAFETY: the machine has these products.
    task.run(unsafe { InFours::new(Vnni(())) })
}

impl DotFours for Avx2 {
    #[inline(always)]
    fn dot_fours(_: InFours<Avx2>, a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: the token exists only where the machine has AVX-VNNI.
        unsafe { _mm256_dpbusd_avx_epi32(sum, a, b) }
    }
}

impl DotFours for Vnni {
    #[inline(always)]
    fn dot_fours(_: InFours<Vnni>, a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: the token exists only where the machine has AVX-512VNNI.
        unsafe { _mm512_dpbusd_epi32(sum, a, b) }
    }
}

impl Integers for Avx2 {
    const LANES: usize = 8;
    const TILE_ROWS: usize = 6;
    const TILE_VECTORS: usize = 2;
    const PREFETCHES: bool = true;
    type V = __m256i;

    #[inline(always)]
    fn prefetch(self, p: *const u8) {
        // SAFETY: every address may be asked for.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }

    with_token! {
        fn splat(x: i32) -> __m256i { _mm256_set1_epi32(x) }
        fn add(a: __m256i, b: __m256i) -> __m256i { _mm256_add_epi32(a, b) }
        fn dot(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
            _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
        }
    }

    with_memory! {
        unsafe fn load(p: *const i32) -> __m256i { _mm256_loadu_si256(p.cast()) }
        unsafe fn store(p: *mut i32, v: __m256i) { _mm256_storeu_si256(p.cast(), v) }
    }
}

impl Integers for Vnni {
    const LANES: usize = 16;
    const TILE_ROWS: usize = 12;
    const TILE_VECTORS: usize = 2;
    const PREFETCHES: bool = true;
    type V = __m512i;

    #[inline(always)]
    fn prefetch(self, p: *const u8) {
        // SAFETY: every address may be asked for.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }

    with_token! {
        fn splat(x: i32) -> __m512i { _mm512_set1_epi32(x) }
        fn add(a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi32(a, b) }
        fn dot(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
            _mm512_dpwssd_epi32(sum, a, b)
        }
    }

    with_memory! {
        unsafe fn load(p: *const i32) -> __m512i { _mm512_loadu_si512(p.cast()) }
        unsafe fn store(p: *mut i32, v: __m512i) { _mm512_storeu_si512(p.cast(), v) }
    }
}
