//! Plain Rust.

use std::array::from_fn;

use super::Bytes;
use crate::isa::portable::Portable as Floats;

type V = [i32; 4];

#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Bytes for Portable {
    type Floats = Floats;
    type V = V;
    const TILE_ROWS: usize = 2;

    #[inline(always)]
    fn floats(self) -> Floats {
        Floats
    }
    #[inline(always)]
    fn splat(self, x: i32) -> V {
        [x; 4]
    }
    #[inline(always)]
    fn number<const BITS: usize>(self, packed: V, i: usize) -> V {
        let mask = i32::from_ne_bytes([u8::MAX >> (8 - BITS); 4]);
        packed.map(|x| (x >> (i * BITS)) & mask)
    }
    #[inline(always)]
    fn dot<const BITS: usize>(self, w: V, a: V, sum: V) -> V {
        from_fn(|i| {
            let (w, a) = (w[i].to_ne_bytes(), a[i].to_ne_bytes());
            let product = |i: usize| i32::from(w[i]) * i32::from(a[i] as i8);
            sum[i].wrapping_add(product(0) + product(1) + product(2) + product(3))
        })
    }
    #[inline(always)]
    fn real(self, sums: V) -> [f32; 4] {
        sums.map(|x| x as f32)
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u8) -> V {
        // SAFETY: `p` is valid for reads of 16 bytes.
        unsafe { p.cast::<V>().read_unaligned() }
    }
}
