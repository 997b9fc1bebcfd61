//! Plain Rust.

use std::array::from_fn;

use super::Integers;
use super::fours::{DotFours, InFours};

type V = [i32; 4];

#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl DotFours for Portable {
    #[inline(always)]
    fn dot_fours(_: InFours<Portable>, a: V, b: V, sum: V) -> V {
        from_fn(|i| {
            let (a, b) = (a[i].to_ne_bytes(), b[i].to_ne_bytes());
            let product = |i: usize| i32::from(a[i]) * i32::from(b[i] as i8);
            sum[i].wrapping_add(product(0) + product(1) + product(2) + product(3))
        })
    }
}

impl Integers for Portable {
    const LANES: usize = 4;
    // The tiles of WebAssembly.
    const TILE_ROWS: usize = 4;
    const TILE_VECTORS: usize = 3;
    const TILE_SUMS: usize = 9;
    type V = V;

    #[inline(always)]
    fn splat(self, x: i32) -> V {
        [x; 4]
    }
    #[inline(always)]
    fn add(self, a: V, b: V) -> V {
        from_fn(|i| a[i].wrapping_add(b[i]))
    }
    #[inline(always)]
    fn dot(self, a: V, b: V, sum: V) -> V {
        from_fn(|i| {
            let low = i32::from(a[i] as i16) * i32::from(b[i] as i16);
            let high = (a[i] >> 16) * (b[i] >> 16);
            sum[i].wrapping_add(low.wrapping_add(high))
        })
    }
    #[inline(always)]
    unsafe fn load(self, p: *const i32) -> V {
        // SAFETY: `p` is valid for reads of four `i32`.
        unsafe { p.cast::<V>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut i32, v: V) {
        // SAFETY: `p` is valid for writes of four `i32`.
        unsafe { p.cast::<V>().write_unaligned(v) }
    }
}
