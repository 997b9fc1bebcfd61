//! AArch64.

use std::arch::aarch64::*;

use super::Bytes;
use crate::isa::neon::Neon as Floats;
use crate::isa::{with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Neon;

impl Bytes for Neon {
    type Floats = Floats;
    type V = int32x4_t;
    const TILE_ROWS: usize = 4;

    #[inline(always)]
    fn floats(self) -> Floats {
        Floats::new()
    }
    #[inline(always)]
    fn number<const BITS: usize>(self, packed: int32x4_t, i: usize) -> int32x4_t {
        if BITS == 8 {
            return packed;
        }
        let mask = u8::MAX >> (8 - BITS);
        // SAFETY: every such machine has these instructions.
        unsafe {
            let shift = vdupq_n_s8(-((i * BITS) as i8));
            let shifted = vshlq_u8(vreinterpretq_u8_s32(packed), shift);
            vreinterpretq_s32_u8(vandq_u8(shifted, vdupq_n_u8(mask)))
        }
    }
    #[inline(always)]
    fn dot<const BITS: usize>(self, w: int32x4_t, a: int32x4_t, sum: int32x4_t) -> int32x4_t {
        // SAFETY: every such machine has these instructions.
        unsafe {
            let (w, a) = (vreinterpretq_u8_s32(w), vreinterpretq_s8_s32(a));
            if BITS <= 4 {
                let w = vreinterpretq_s8_u8(w);
                // Two products are at most 2 * 15 * 127.
                let low = vmull_s8(vget_low_s8(w), vget_low_s8(a));
                let high = vmull_high_s8(w, a);
                return vpadalq_s16(sum, vpaddq_s16(low, high));
            }
            let product = |w: uint8x8_t, a: int8x8_t| {
                let (w, a) = (vreinterpretq_s16_u16(vmovl_u8(w)), vmovl_s8(a));
                let low = vmull_s16(vget_low_s16(w), vget_low_s16(a));
                vpaddq_s32(low, vmull_high_s16(w, a))
            };
            let low = product(vget_low_u8(w), vget_low_s8(a));
            let high = product(vget_high_u8(w), vget_high_s8(a));
            vaddq_s32(sum, vpaddq_s32(low, high))
        }
    }

    with_token! {
        fn splat(x: i32) -> int32x4_t { vdupq_n_s32(x) }
        fn real(sums: int32x4_t) -> float32x4_t { vcvtq_f32_s32(sums) }
    }

    with_memory! {
        unsafe fn load(p: *const u8) -> int32x4_t { vreinterpretq_s32_u8(vld1q_u8(p)) }
    }
}
