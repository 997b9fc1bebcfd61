//! Vectors of bytes, their products, and the floats that sums of them become. The sums are exact, so that they are the
//! same on every instruction set: what saturates is kept below that by the bits of the weights.

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

use super::{Isa, Kind, Simd};

/// A vector as in [`Simd`], for bytes and the sums of their products, `i32`.
pub(crate) trait Bytes: Copy + 'static {
    /// Vectors of as many floats as there are sums.
    type Floats: Simd;
    type V: Copy;
    /// Bytes of a vector: four for each sum.
    const LEN: usize = 4 * Self::Floats::LANES;
    /// Rows of a tile of two vectors of columns: there are registers for its sums, what they come to and the weights. At
    /// most 6.
    const TILE_ROWS: usize;

    fn floats(self) -> Self::Floats;
    /// A vector with one number in each sum, or the same four bytes.
    fn splat(self, x: i32) -> Self::V;
    /// Number `i` of the numbers of `BITS` bits in each byte.
    fn number<const BITS: usize>(self, packed: Self::V, i: usize) -> Self::V;
    /// `sum` and four products each of bytes of `w`, unsigned and of `BITS` bits, and of `a`, signed and not -128.
    fn dot<const BITS: usize>(self, w: Self::V, a: Self::V, sum: Self::V) -> Self::V;
    /// Sums as floats.
    fn real(self, sums: Self::V) -> <Self::Floats as Simd>::V;

    /// # Safety
    /// `p` is valid for reads of `LEN` bytes.
    unsafe fn load(self, p: *const u8) -> Self::V;

    /// The first `n` bytes, zeros behind them; `n <= LEN`, a multiple of four.
    /// # Safety
    /// `p` is valid for reads of `n` bytes.
    #[inline(always)]
    unsafe fn load_part(self, p: *const u8, n: usize) -> Self::V {
        let mut bytes = [0u8; 64];
        // SAFETY: `p` has `n` bytes, and no vector has more than 64.
        unsafe {
            std::ptr::copy_nonoverlapping(p, bytes.as_mut_ptr(), n.min(64));
            self.load(bytes.as_ptr())
        }
    }

    /// Floats, each in `each` neighbouring lanes; `each` is a power of two, at most the lanes. Behind the first
    /// `count` are zeros.
    /// # Safety
    /// `p` is valid for reads of `count` elements, at least one.
    #[inline(always)]
    unsafe fn spread(self, p: *const f32, count: usize, each: usize) -> <Self::Floats as Simd>::V {
        if each == Self::Floats::LANES {
            // SAFETY: `p` has an element.
            return self.floats().splat(unsafe { p.read() });
        }
        let mut lanes = [0.0f32; 16];
        let count = count.min(Self::Floats::LANES / each);
        for i in 0..count {
            // SAFETY: `p` has `count` elements.
            let x = unsafe { p.add(i).read() };
            lanes[i * each..][..each].fill(x);
        }
        // SAFETY: no vector has more than 16 floats.
        unsafe { self.floats().load(lanes.as_ptr()) }
    }
}

/// A computation on bytes that is compiled for each instruction set.
pub(crate) trait ByteTask {
    type Output;
    /// Implementations are `#[inline(always)]`.
    fn run<B: Bytes>(self, b: B) -> Self::Output;
}

struct Len;

impl ByteTask for Len {
    type Output = usize;

    #[inline(always)]
    fn run<B: Bytes>(self, _: B) -> usize {
        B::LEN
    }
}

impl Isa {
    /// Bytes of a vector: [`Bytes::LEN`].
    pub(crate) fn vector_bytes(self) -> usize {
        self.dispatch_bytes(Len)
    }

    /// Runs a task on bytes, compiled for this instruction set.
    #[inline]
    pub(crate) fn dispatch_bytes<T: ByteTask>(self, task: T) -> T::Output {
        match self.0 {
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Kind::Portable => task.run(portable::Portable),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 if std::is_x86_feature_detected!("avx512vnni") => {
                // SAFETY: the machine has AVX-512 by the kind, and the rest was just asked for.
                unsafe { x86::run_vnni(task) }
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: both kinds are made only where the machine has AVX2 and FMA.
            Kind::Avx2 | Kind::Avx512 => unsafe { x86::run_avx2(task) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => task.run(neon::Neon),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Kind::Wasm => task.run(wasm::Wasm),
        }
    }
}
