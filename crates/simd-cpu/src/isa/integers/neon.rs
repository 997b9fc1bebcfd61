//! AArch64.

use std::arch::aarch64::*;

use super::fours::{DotFours, InFours};
use super::{IntegerTask, Integers};
use crate::isa::{with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Neon;

/// # Safety
/// The machine has the products of the feature `dotprod`.
#[target_feature(enable = "dotprod")]
pub(super) unsafe fn run_fours<T: IntegerTask>(task: T) -> T::Output {
    // SAFETY: the machine has these products.
    task.run(unsafe { InFours::new(Neon) })
}

impl DotFours for Neon {
    #[inline(always)]
    fn dot_fours(_: InFours<Neon>, a: int32x4_t, b: int32x4_t, mut sum: int32x4_t) -> int32x4_t {
        // SAFETY: the token exists only where the machine has the instruction, which reads and writes registers alone.
        // Stable Rust has no intrinsic for it.
        unsafe {
            std::arch::asm!(
                ".arch_extension dotprod",
                "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
                inlateout(vreg) sum, in(vreg) a, in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
}

impl Integers for Neon {
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

    with_memory! {
        unsafe fn load(p: *const i32) -> int32x4_t { vld1q_s32(p) }
        unsafe fn store(p: *mut i32, v: int32x4_t) { vst1q_s32(p, v) }
    }
}
