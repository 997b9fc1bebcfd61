//! Products of four bytes with four others, added to a sum in one instruction: twice as many as of pairs of `i16`.

use std::array::from_fn;

use super::{IntegerTask, Integers, Isa, Kind, sum_of};

/// An instruction set that multiplies bytes in fours, exactly: data, by which [`Fours::signed_data`] says what they are, by
/// weights, which are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fours {
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    Portable,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Vnni,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
    Wasm { signed_data: bool },
}

impl Isa {
    /// How this machine multiplies bytes in fours, if it does.
    pub(crate) fn fours(self) -> Option<Fours> {
        match self.0 {
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Kind::Portable => Some(Fours::Portable),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 if std::is_x86_feature_detected!("avx512vnni") => Some(Fours::Vnni),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Avx512 => {
                std::is_x86_feature_detected!("avxvnni").then_some(Fours::AvxVnni)
            }
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => std::arch::is_aarch64_feature_detected!("dotprod").then_some(Fours::Neon),
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Kind::Wasm => super::wasm::signed_data().map(|signed_data| Fours::Wasm { signed_data }),
            #[cfg(all(
                target_arch = "wasm32",
                target_feature = "simd128",
                not(target_feature = "relaxed-simd")
            ))]
            Kind::Wasm => None,
        }
    }
}

impl Fours {
    /// Whether data are signed.
    pub(crate) fn signed_data(self) -> bool {
        match self {
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Fours::Portable => false,
            #[cfg(target_arch = "x86_64")]
            Fours::AvxVnni | Fours::Vnni => false,
            #[cfg(target_arch = "aarch64")]
            Fours::Neon => true,
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Fours::Wasm { signed_data } => signed_data,
        }
    }

    /// Runs a task whose [`Integers::dot`] multiplies bytes.
    #[cfg_attr(
        all(target_arch = "wasm32", not(target_feature = "relaxed-simd")),
        expect(unused_variables, reason = "this build has no such value")
    )]
    #[inline]
    pub(crate) fn dispatch<T: IntegerTask>(self, task: T) -> T::Output {
        match self {
            #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
            Fours::Portable => task.run(InFours(super::portable::Portable)),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::fours` makes this value only where the machine has AVX2 and AVX-VNNI.
            Fours::AvxVnni => unsafe { super::x86::run_avx_vnni(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::fours` makes this value only where the machine has AVX-512 and AVX-512VNNI.
            Fours::Vnni => unsafe { super::x86::run_vnni_fours(task) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: `Isa::fours` makes this value only where the machine has these products.
            Fours::Neon => unsafe { super::neon::run_fours(task) },
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Fours::Wasm { .. } => task.run(InFours(super::wasm::Wasm)),
        }
    }
}

/// Lays the bytes of four rows side by side.
#[inline(always)]
pub(super) fn weave_bytes([a, b, c, d]: [&[u8]; 4], to: &mut [i32]) {
    let to: &mut [[u8; 4]] = bytemuck::cast_slice_mut(to);
    let rows = a.iter().zip(b).zip(c).zip(d);
    for (to, (((&a, &b), &c), &d)) in to.iter_mut().zip(rows) {
        *to = [a, b, c, d];
    }
}

/// The token of an instruction set whose products are those of bytes.
#[derive(Clone, Copy)]
pub(super) struct InFours<I>(I);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl<I> InFours<I> {
    /// # Safety
    /// The machine has the products of [`DotFours`].
    #[inline(always)]
    pub(super) unsafe fn new(token: I) -> InFours<I> {
        InFours(token)
    }
}

/// An instruction set with products of bytes, which not every machine with the set has.
pub(super) trait DotFours: Integers {
    /// `sum` and four products each of bytes of `a`, which are data, and `b`, which are weights. `token` says that the
    /// machine has them.
    fn dot_fours(token: InFours<Self>, a: Self::V, b: Self::V, sum: Self::V) -> Self::V;

    /// [`Integers::sum`] of bytes as data are.
    #[inline(always)]
    fn sum_data(_: InFours<Self>, bytes: &[u8], signed: bool) -> i32 {
        sum_of(bytes, signed)
    }

    /// [`Integers::weave`] of bytes.
    #[inline(always)]
    fn weave_fours(rows: [&[u8]; 4], to: &mut [i32]) {
        weave_bytes(rows, to);
    }
}

impl<I: DotFours> Integers for InFours<I> {
    const LANES: usize = I::LANES;
    const GROUP: usize = 4;
    const TILE_ROWS: usize = I::TILE_ROWS;
    const TILE_VECTORS: usize = I::TILE_VECTORS;
    const TILE_SUMS: usize = I::TILE_SUMS;
    const PREFETCHES: bool = I::PREFETCHES;
    type V = I::V;

    #[inline(always)]
    fn prefetch(self, p: *const u8) {
        self.0.prefetch(p);
    }
    #[inline(always)]
    fn splat(self, x: i32) -> I::V {
        self.0.splat(x)
    }
    #[inline(always)]
    fn add(self, a: I::V, b: I::V) -> I::V {
        self.0.add(a, b)
    }
    #[inline(always)]
    fn dot(self, a: I::V, b: I::V, sum: I::V) -> I::V {
        I::dot_fours(self, a, b, sum)
    }
    #[inline(always)]
    fn sum(self, bytes: &[u8], signed: bool) -> i32 {
        I::sum_data(self, bytes, signed)
    }
    #[inline(always)]
    fn weave<'a>(self, row: impl Fn(usize) -> &'a [u8], to: &mut [i32]) {
        I::weave_fours(from_fn(row), to);
    }
    #[inline(always)]
    unsafe fn load(self, p: *const i32) -> I::V {
        // SAFETY: the contract of `load`.
        unsafe { self.0.load(p) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut i32, v: I::V) {
        // SAFETY: the contract of `store`.
        unsafe { self.0.store(p, v) }
    }
}
