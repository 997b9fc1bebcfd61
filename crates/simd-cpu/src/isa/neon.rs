//! AArch64, where NEON is always there.

use std::arch::aarch64::*;

use super::{Simd, with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    pub(crate) fn new() -> Neon {
        Neon(())
    }
}

impl Simd for Neon {
    const LANES: usize = 4;
    const TILE_ROWS: usize = 8;
    const TILE_VECTORS: usize = 2;
    const ADDS_IN_PLACE: bool = true;
    type V = float32x4_t;
    type Mask = uint32x4_t;

    with_token! {
        fn splat(x: f32) -> float32x4_t { vdupq_n_f32(x) }
        fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t { vaddq_f32(a, b) }
        fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t { vsubq_f32(a, b) }
        fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t { vmulq_f32(a, b) }
        fn div(a: float32x4_t, b: float32x4_t) -> float32x4_t { vdivq_f32(a, b) }
        fn fma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t { vfmaq_f32(c, a, b) }
        fn min(a: float32x4_t, b: float32x4_t) -> float32x4_t { vbslq_f32(vcltq_f32(b, a), b, a) }
        fn max(a: float32x4_t, b: float32x4_t) -> float32x4_t { vbslq_f32(vcgtq_f32(b, a), b, a) }
        fn abs(a: float32x4_t) -> float32x4_t { vabsq_f32(a) }
        fn neg(a: float32x4_t) -> float32x4_t { vnegq_f32(a) }
        fn sqrt(a: float32x4_t) -> float32x4_t { vsqrtq_f32(a) }
        fn floor(a: float32x4_t) -> float32x4_t { vrndmq_f32(a) }
        fn ceil(a: float32x4_t) -> float32x4_t { vrndpq_f32(a) }
        fn round(a: float32x4_t) -> float32x4_t { vrndnq_f32(a) }
        fn exp2_whole(n: float32x4_t) -> float32x4_t {
            vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127))))
        }
        fn less(a: float32x4_t, b: float32x4_t) -> uint32x4_t { vcltq_f32(a, b) }
        fn is_nan(a: float32x4_t) -> uint32x4_t { vmvnq_u32(vceqq_f32(a, a)) }
        fn select(mask: uint32x4_t, yes: float32x4_t, no: float32x4_t) -> float32x4_t {
            vbslq_f32(mask, yes, no)
        }
        fn sum(a: float32x4_t) -> f32 { vaddvq_f32(a) }
        fn largest(a: float32x4_t) -> f32 { vmaxvq_f32(a) }
    }

    with_memory! {
        unsafe fn load(p: *const f32) -> float32x4_t { vld1q_f32(p) }
        unsafe fn store(p: *mut f32, v: float32x4_t) { vst1q_f32(p, v) }
        unsafe fn load_u2(p: *const u8) -> float32x4_t {{
            let each = vshlq_u32(vdupq_n_u32((*p).into()), vld1q_s32([0, -2, -4, -6].as_ptr()));
            vcvtq_f32_u32(vandq_u32(each, vdupq_n_u32(3)))
        }}
        unsafe fn load_u4(p: *const u8) -> float32x4_t {{
            let all = vdupq_n_u32(p.cast::<u16>().read_unaligned().into());
            let each = vshlq_u32(all, vld1q_s32([0, -4, -8, -12].as_ptr()));
            vcvtq_f32_u32(vandq_u32(each, vdupq_n_u32(15)))
        }}
        unsafe fn load_u8(p: *const u8) -> float32x4_t {{
            let all = vcreate_u8(p.cast::<u32>().read_unaligned().into());
            vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(all))))
        }}
        unsafe fn load_f16(p: *const u16) -> float32x4_t {
            vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))
        }
        unsafe fn load_bf16(p: *const u16) -> float32x4_t {
            vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(p)))
        }
    }
    #[inline(always)]
    unsafe fn load_part(self, p: *const f32, n: usize) -> float32x4_t {
        let mut all = [0.0f32; 4];
        // SAFETY: `p` is valid for reads of `n` elements, and four are read from `all`.
        unsafe {
            std::ptr::copy_nonoverlapping(p, all.as_mut_ptr(), n);
            vld1q_f32(all.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, v: float32x4_t, n: usize) {
        let mut all = [0.0f32; 4];
        // SAFETY: four elements are written to `all`, and `p` is valid for writes of `n`.
        unsafe {
            vst1q_f32(all.as_mut_ptr(), v);
            std::ptr::copy_nonoverlapping(all.as_ptr(), p, n);
        }
    }
}
