//! The vector instruction sets, behind one trait.
//!
//! A value of a type that implements [`Simd`] is a token: it exists only where the machine has
//! the instructions, so the arithmetic on it is safe. Kernels are written once, as a [`Task`]
//! generic over the token, and [`Isa::dispatch`] compiles them once for each instruction set.
//! Everything that a task calls with a token must be `#[inline(always)]`, or it would be compiled
//! without the instructions.
//!
//! On wasm the whole build has them. A browser compiles a function when it is first called and
//! optimises it once it is hot, so that there the parts of large kernels are functions of their own:
//! those that a model does not use cost nothing.

pub(crate) mod bytes;
pub(crate) mod integers;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod portable;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::fmt;
use std::sync::OnceLock;

pub(crate) use bytes::{ByteTask, Bytes};
pub(crate) use integers::{Fours, IntegerTask, Integers, RESULTS, Rescale, Round};
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub(crate) use portable::turn;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) use wasm::turn;

/// Bytes that the machines which fetch ahead move at once.
pub(crate) const LINE: usize = 64;

/// A number in all lanes of a small vector.
#[repr(C, align(16))]
pub(crate) struct Constant([f32; 4]);

impl Constant {
    pub(crate) const fn of(x: f32) -> Constant {
        Constant([x; 4])
    }

    pub(crate) const fn all<const N: usize>(x: [f32; N]) -> [Constant; N] {
        let mut all = [const { Constant::of(0.0) }; N];
        let mut i = 0;
        while i < N {
            all[i] = Constant::of(x[i]);
            i += 1;
        }
        all
    }
}

/// A vector of a number that is known.
macro_rules! constant {
    ($s:ident, $x:expr) => {
        $s.constant(const { &$crate::isa::Constant::of($x) })
    };
}
pub(crate) use constant;

/// Vectors of `f32` and what can be done with them.
pub(crate) trait Simd: Copy + 'static {
    /// Elements of a vector.
    const LANES: usize;
    /// Rows of the matrix-product tile that fills the register file; at most 12.
    const TILE_ROWS: usize;
    /// Vectors of a row of that tile; at most 2.
    const TILE_VECTORS: usize;
    /// Whether a tile's loop takes several steps of the depth in a turn.
    const UNROLLED: bool = true;
    /// Whether [`Simd::fma`] is one instruction that overwrites the addend.
    const ADDS_IN_PLACE: bool = false;
    /// Whether [`Simd::prefetch`] does something.
    const PREFETCHES: bool = false;
    type V: Copy;
    /// One condition for each element.
    type Mask: Copy;

    /// Rows of the tile on this machine, where the instruction set alone does not tell; at most `TILE_ROWS`.
    fn tile_rows(self) -> usize {
        Self::TILE_ROWS
    }

    fn splat(self, x: f32) -> Self::V;
    /// A number that is known, in all lanes.
    #[inline(always)]
    fn constant(self, x: &'static Constant) -> Self::V {
        self.splat(x.0[0])
    }
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once or twice.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The smaller; `a` where either is NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// The larger; `a` where either is NaN.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    fn abs(self, a: Self::V) -> Self::V;
    fn neg(self, a: Self::V) -> Self::V;
    fn sqrt(self, a: Self::V) -> Self::V;
    fn floor(self, a: Self::V) -> Self::V;
    fn ceil(self, a: Self::V) -> Self::V;
    /// Rounds to the nearest integer, ties to even.
    fn round(self, a: Self::V) -> Self::V;
    /// `2^n` for whole `n` in `-126..=127`.
    fn exp2_whole(self, n: Self::V) -> Self::V;
    /// False where either is NaN.
    fn less(self, a: Self::V, b: Self::V) -> Self::Mask;
    fn is_nan(self, a: Self::V) -> Self::Mask;
    fn select(self, mask: Self::Mask, yes: Self::V, no: Self::V) -> Self::V;
    fn sum(self, a: Self::V) -> f32;
    /// The largest element, where none is NaN.
    fn largest(self, a: Self::V) -> f32;

    /// Tells the machine that the [`LINE`] at `p`, if anything lies there, is wanted soon.
    #[inline(always)]
    fn prefetch(self, _: *const u8) {}

    /// # Safety
    /// `p` is valid for reads of `LANES` elements.
    unsafe fn load(self, p: *const f32) -> Self::V;
    /// # Safety
    /// `p` is valid for writes of `LANES` elements.
    unsafe fn store(self, p: *mut f32, v: Self::V);
    /// The first `n` elements, zeros behind them; `0 < n <= LANES`.
    /// # Safety
    /// `p` is valid for reads of `n` elements.
    unsafe fn load_part(self, p: *const f32, n: usize) -> Self::V;
    /// Stores the first `n` elements; `0 < n <= LANES`.
    /// # Safety
    /// `p` is valid for writes of `n` elements.
    unsafe fn store_part(self, p: *mut f32, v: Self::V, n: usize);
    /// `LANES` numbers of 2 bits, the lowest bits of a byte first.
    /// # Safety
    /// `p` is valid for reads of `LANES / 4` bytes.
    unsafe fn load_u2(self, p: *const u8) -> Self::V;
    /// `LANES` numbers of 4 bits, the lowest bits of a byte first.
    /// # Safety
    /// `p` is valid for reads of `LANES / 2` bytes.
    unsafe fn load_u4(self, p: *const u8) -> Self::V;
    /// `LANES` numbers of 8 bits.
    /// # Safety
    /// `p` is valid for reads of `LANES` bytes.
    unsafe fn load_u8(self, p: *const u8) -> Self::V;
    /// `LANES` numbers of `BITS` bits, each times [`Simd::place`] of its lane.
    /// # Safety
    /// `p` is valid for reads of them.
    #[inline(always)]
    unsafe fn load_placed<const BITS: usize>(self, p: *const u8) -> Self::V {
        // SAFETY: the contract is the same.
        unsafe {
            match BITS {
                2 => self.load_u2(p),
                4 => self.load_u4(p),
                _ => self.load_u8(p),
            }
        }
    }
    /// A power of two: what numbers of so many bits are times where lanes cannot be shifted each by itself.
    #[inline(always)]
    fn place(_bits: usize, _lane: usize) -> f32 {
        1.0
    }
    /// `LANES` numbers of `float16`, the same numbers in `float32`.
    /// # Safety
    /// `p` is valid for reads of `LANES` elements.
    unsafe fn load_f16(self, p: *const u16) -> Self::V;
    /// `LANES` numbers of `bfloat16`, the same numbers in `float32`.
    /// # Safety
    /// `p` is valid for reads of `LANES` elements.
    unsafe fn load_bf16(self, p: *const u16) -> Self::V;
}

/// Loads the first `count` elements; `FULL` says that they are a whole vector.
///
/// # Safety
/// `p` is valid for reads of `count` elements, of a vector if `FULL`.
#[inline(always)]
pub(crate) unsafe fn read<S: Simd, const FULL: bool>(s: S, p: *const f32, count: usize) -> S::V {
    // SAFETY: `p` is valid for reads of a vector if `FULL`, else of `count` elements.
    unsafe {
        if FULL {
            s.load(p)
        } else {
            s.load_part(p, count)
        }
    }
}

/// Stores the first `count` elements; `FULL` says that they are a whole vector.
///
/// # Safety
/// `p` is valid for writes of `count` elements, of a vector if `FULL`.
#[inline(always)]
pub(crate) unsafe fn write<S: Simd, const FULL: bool>(s: S, p: *mut f32, v: S::V, count: usize) {
    // SAFETY: `p` is valid for writes of a vector if `FULL`, else of `count` elements.
    unsafe {
        if FULL {
            s.store(p, v)
        } else {
            s.store_part(p, v, count)
        }
    }
}

/// Methods of a token: each body may use the intrinsics that the token stands for.
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
macro_rules! with_token {
    ($($v:vis fn $name:ident($($a:ident: $t:ty),*) -> $r:ty { $e:expr })*) => { $(
        #[inline(always)]
        #[allow(unused_unsafe, reason = "some of what stands there is safe")]
        $v fn $name(self, $($a: $t),*) -> $r {
            // SAFETY: the token exists only where the machine has these instructions.
            unsafe { $e }
        }
    )* };
}
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
use with_token;

/// Methods of a token that read or write memory: each body may use the intrinsics that the token stands for.
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
macro_rules! with_memory {
    ($(unsafe fn $name:ident($($a:ident: $t:ty),*) $(-> $r:ty)? { $e:expr })*) => { $(
        #[inline(always)]
        unsafe fn $name(self, $($a: $t),*) $(-> $r)? {
            // SAFETY: the token says that the instructions are there, and the pointers are valid for what the trait
            // says of this method.
            unsafe { $e }
        }
    )* };
}
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
use with_memory;

/// A computation that is compiled for each instruction set.
pub(crate) trait Task {
    type Output;
    /// Implementations are `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The constants of an instruction set: lanes, and vectors and rows of a tile.
struct Sizes;

impl Task for Sizes {
    type Output = [usize; 3];

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> [usize; 3] {
        [S::LANES, S::TILE_VECTORS, S::TILE_ROWS]
    }
}

/// An instruction set that this machine has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Isa(Kind);

#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "some builds make no choice between them")]
enum Kind {
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Wasm,
}

impl Isa {
    /// What every machine that runs this build has.
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    const ALWAYS: Isa = Isa(Kind::Portable);
    /// What every machine that runs this build has.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    const ALWAYS: Isa = Isa(Kind::Wasm);

    /// The instruction sets of this machine, the best last.
    pub fn available() -> Vec<Isa> {
        #[allow(unused_mut, reason = "most machines have one only")]
        let mut list = vec![Isa::ALWAYS];
        #[cfg(target_arch = "x86_64")]
        {
            // Every machine that has the first two has the third.
            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
            {
                list.push(Isa(Kind::Avx2));
                if is_x86_feature_detected!("avx512f") {
                    list.push(Isa(Kind::Avx512));
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        list.push(Isa(Kind::Neon));
        list
    }

    /// The fastest of them, or the one that the environment variable `KILIM_ISA` names, if it is there.
    pub fn best() -> Isa {
        static CHOSEN: OnceLock<Isa> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let all = Isa::available();
            let named = std::env::var("KILIM_ISA").ok();
            let chosen = all.iter().find(|isa| named.as_deref() == Some(isa.name()));
            chosen.or(all.last()).copied().unwrap_or(Isa::ALWAYS)
        })
    }

    pub const fn name(self) -> &'static str {
        match self.0 {
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2+fma",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Kind::Wasm => {
                if cfg!(target_feature = "relaxed-simd") {
                    "wasm relaxed simd"
                } else {
                    "wasm simd128"
                }
            }
        }
    }

    /// Elements of a vector.
    pub(crate) fn lanes(self) -> usize {
        self.dispatch(Sizes)[0]
    }

    /// Vectors of a row of a matrix-product tile.
    pub(crate) fn tile_vectors(self) -> usize {
        self.dispatch(Sizes)[1]
    }

    /// Rows of the largest matrix-product tile.
    pub(crate) fn tile_rows(self) -> usize {
        self.dispatch(Sizes)[2]
    }

    /// What so many multiplications and additions of matrix products cost a `Meter`, whose operations take a
    /// nanosecond: cores do four vectors of them and more in one.
    pub(crate) fn cost(self, products: usize) -> usize {
        products / (4 * self.lanes())
    }

    /// Runs a task, compiled for this instruction set.
    #[inline]
    pub(crate) fn dispatch<T: Task>(self, task: T) -> T::Output {
        match self.0 {
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Kind::Portable => task.run(portable::Portable),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `available` makes this kind only where the machine has the instructions.
            Kind::Avx2 => unsafe { x86::run_avx2(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `available` makes this kind only where the machine has the instructions.
            Kind::Avx512 => unsafe { x86::run_avx512(task) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => task.run(neon::Neon::new()),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Kind::Wasm => task.run(wasm::Wasm),
        }
    }
}

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{Isa, Simd, Task};
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;

    /// The largest of a vector, whichever element it is; the others are negative.
    struct Largest;

    impl Task for Largest {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            for place in 0..S::LANES {
                let mut numbers = [f32::NEG_INFINITY; 16];
                for (i, number) in numbers.iter_mut().enumerate().skip(1) {
                    *number = -(i as f32);
                }
                numbers[place] = 0.25;
                // SAFETY: no vector has more than 16 elements.
                let vector = unsafe { s.load(numbers.as_ptr()) };
                assert_eq!(s.largest(vector), 0.25, "{place}");
            }
        }
    }

    #[test]
    fn the_largest_is_found_at_every_place() {
        for isa in Isa::available() {
            isa.dispatch(Largest);
        }
    }
}
