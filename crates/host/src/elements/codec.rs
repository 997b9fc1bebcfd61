//! Element types widened to a few types that kernels compute in. Kernels that are not hot work in
//! blocks: load and widen, compute, narrow and store. So one kernel serves every element type.

use bytemuck::Pod;
use half::{bf16, f16};
use kilim_core::narrow::{self, Narrowing};
use kilim_core::{DType, Result};

use crate::work::{CpuRun, by};

/// Elements that are widened at a time.
pub const BLOCK: usize = 256;

/// The type that arithmetic on an element type is done in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `float32`, and all floating-point types that are narrower.
    F32,
    /// `float64`.
    F64,
    /// Signed integers, narrow unsigned ones, booleans, the numbers of texts.
    I64,
    /// `uint64`.
    U64,
}

impl Class {
    /// What elements of a type are computed in.
    pub const fn of(dtype: DType) -> Class {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => Class::F32,
            _ if dtype.is_narrow_float() => Class::F32,
            DType::F64 => Class::F64,
            DType::U64 => Class::U64,
            _ => Class::I64,
        }
    }
}

/// How elements of one type are read as, and written from, `W`.
#[derive(Clone, Copy)]
pub struct Codec<W> {
    dtype: DType,
    load: fn(DType, &[u8], usize, &mut [W]),
    store: fn(DType, &mut [u8], usize, &[W]),
}

impl<W: Pod> Codec<W> {
    /// Bytes of an element.
    pub fn size(&self) -> usize {
        self.dtype.size()
    }

    /// Reads as many elements as the buffer holds, from the given one on.
    pub fn load(&self, bytes: &[u8], start: usize, out: &mut [W]) {
        (self.load)(self.dtype, bytes, start, out);
    }

    /// Writes them; numbers that do not fit wrap as C's conversions do, those too large for a type
    /// of float8, float6 or float4 saturate.
    pub fn store(&self, bytes: &mut [u8], start: usize, from: &[W]) {
        (self.store)(self.dtype, bytes, start, from);
    }

    /// Reads as many elements as the buffer holds.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn load_all(&self, cpu: &CpuRun, bytes: &[u8], out: &mut [W]) -> Result<()>
    where
        W: Send + Sync,
    {
        cpu.rows(out.len(), by(out, 1), COST, |piece, out, _| {
            self.load(bytes, piece.start, out);
            Ok(())
        })
    }

    /// Writes as many elements as there are.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn store_all(&self, cpu: &CpuRun, bytes: &mut [u8], from: &[W]) -> Result<()>
    where
        W: Send + Sync,
    {
        cpu.rows(
            from.len(),
            by(bytes, self.size()),
            COST,
            |piece, bytes, _| {
                self.store(bytes, 0, &from[piece]);
                Ok(())
            },
        )
    }

    /// Element `i` of a buffer.
    pub fn get(&self, bytes: &[u8], i: usize) -> W {
        let mut one = [W::zeroed()];
        self.load(bytes, i, &mut one);
        one[0]
    }

    /// Writes element `i` of a buffer, as [`Codec::store`] does.
    pub fn set(&self, bytes: &mut [u8], i: usize, value: W) {
        self.store(bytes, i, &[value]);
    }
}

/// Operations of a conversion; those from and to types of less than a byte take the longest.
pub const COST: usize = 4;

/// A type to compute in.
pub trait Wide: Pod + PartialOrd + Send + Sync {
    /// How elements of a type are read as `Self` and written.
    fn codec(dtype: DType) -> Codec<Self>;
}

/// Conversion of one element.
trait Narrow<W>: Pod {
    fn widen(self) -> W;
    fn narrow(wide: W) -> Self;
}

/// A boolean's byte.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Truth(u8);

macro_rules! by_cast {
    ($w:ty: $($t:ty),*) => { $(impl Narrow<$w> for $t {
        fn widen(self) -> $w { self as $w }
        fn narrow(wide: $w) -> $t { wide as $t }
    })* };
}
by_cast!(f32: f32, f64);
by_cast!(f64: f32, f64);
by_cast!(i64: f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);
by_cast!(u64: f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! by_way_of_i64 {
    ($w:ty: $($t:ty),*) => { $(impl Narrow<$w> for $t {
        fn widen(self) -> $w { self as $w }
        fn narrow(wide: $w) -> $t { wide as i64 as $t }
    })* };
}
by_way_of_i64!(f64: i8, i16, i32, i64, u8, u16, u32);
by_way_of_i64!(f32: i8, i16, i32, i64, u8, u16, u32);

macro_rules! unsigned_from_float {
    ($($w:ty),*) => { $(impl Narrow<$w> for u64 {
        fn widen(self) -> $w { self as $w }
        fn narrow(wide: $w) -> u64 { if wide < 0.0 { wide as i64 as u64 } else { wide as u64 } }
    })* };
}
unsigned_from_float!(f32, f64);

/// `float16` to `float32`, without a branch or a call, so that loops over it vectorise.
fn from_half(h: f16) -> f32 {
    let bits = u32::from(h.to_bits());
    let sign = (bits & 0x8000) << 16;
    let magnitude = (bits & 0x7fff) << 13;
    // Moves the exponent from one bias to the other, subnormal numbers included.
    let moved = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let special = magnitude >= 0x0f80_0000;
    f32::from_bits(
        sign | if special {
            magnitude | 0x7f80_0000
        } else {
            moved
        },
    )
}

/// `float32` to the nearest `float16`, ties to even.
fn to_half(v: f32) -> f16 {
    let bits = v.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let half = if magnitude >= 0x4780_0000 {
        if magnitude > 0x7f80_0000 {
            0x7e00
        } else {
            0x7c00
        }
    } else if magnitude < 0x3880_0000 {
        // Adding half a unit of the largest subnormal's exponent rounds and aligns the mantissa.
        let magic = 0x3f00_0000;
        (f32::from_bits(magnitude) + f32::from_bits(magic)).to_bits() - magic
    } else {
        let odd = (magnitude >> 13) & 1;
        (magnitude - 0x3800_0000 + 0xfff + odd) >> 13
    };
    f16::from_bits((sign | half) as u16)
}

/// `float64` to `float32` with an odd last bit where something was cut off, so that rounding it
/// again to a type with two bits less or more gives what rounding once would have.
fn to_odd(v: f64) -> f32 {
    let near = v as f32;
    if f64::from(near) == v || v.is_nan() {
        return near;
    }
    let away = f64::from(near).abs() > v.abs();
    f32::from_bits((near.to_bits() - u32::from(away)) | 1)
}

macro_rules! halves {
    ($($t:ty: $from:expr, $to:expr);*) => { $(
        impl Narrow<f32> for $t {
            fn widen(self) -> f32 { $from(self) }
            fn narrow(wide: f32) -> $t { $to(wide) }
        }
        impl Narrow<f64> for $t {
            fn widen(self) -> f64 { self.to_f64() }
            fn narrow(wide: f64) -> $t { $to(to_odd(wide)) }
        }
        impl Narrow<i64> for $t {
            fn widen(self) -> i64 { self.to_f64() as i64 }
            fn narrow(wide: i64) -> $t { $to(to_odd(wide as f64)) }
        }
        impl Narrow<u64> for $t {
            fn widen(self) -> u64 { self.to_f64() as u64 }
            fn narrow(wide: u64) -> $t { $to(to_odd(wide as f64)) }
        }
    )* };
}
halves!(f16: from_half, to_half; bf16: bf16::to_f32, bf16::from_f32);

macro_rules! truths {
    ($($w:ty => $zero:literal),*) => { $(impl Narrow<$w> for Truth {
        fn widen(self) -> $w { u8::from(self.0 != 0) as $w }
        fn narrow(wide: $w) -> Truth { Truth(u8::from(wide != $zero)) }
    })* };
}
truths!(f32 => 0.0, f64 => 0.0, i64 => 0, u64 => 0);

/// What narrow types become by way of.
trait Scalar: Pod {
    fn of_f32(v: f32) -> Self;
    fn to_f64(self) -> f64;
    fn to_i64(self) -> i64;
}

macro_rules! scalars {
    ($($w:ty),*) => { $(impl Scalar for $w {
        fn of_f32(v: f32) -> $w { v as $w }
        fn to_f64(self) -> f64 { self as f64 }
        fn to_i64(self) -> i64 { self as i64 }
    })* };
}
scalars!(f32, f64, i64, u64);

fn load<T: Narrow<W>, W: Pod>(_: DType, bytes: &[u8], start: usize, out: &mut [W]) {
    let from: &[T] = bytemuck::cast_slice(bytes);
    for (o, v) in out.iter_mut().zip(&from[start..]) {
        *o = v.widen();
    }
}

fn store<T: Narrow<W>, W: Pod>(_: DType, bytes: &mut [u8], start: usize, from: &[W]) {
    let out: &mut [T] = bytemuck::cast_slice_mut(bytes);
    for (o, v) in out[start..].iter_mut().zip(from) {
        *o = T::narrow(*v);
    }
}

fn load_narrow<W: Scalar>(dtype: DType, bytes: &[u8], start: usize, out: &mut [W]) {
    for (o, bits) in out.iter_mut().zip(&bytes[start..]) {
        *o = W::of_f32(narrow::decode(dtype, *bits));
    }
}

fn store_narrow<W: Scalar>(dtype: DType, bytes: &mut [u8], start: usize, from: &[W]) {
    for (o, v) in bytes[start..].iter_mut().zip(from) {
        *o = match dtype.is_narrow_float() {
            true => narrow::encode(dtype, v.to_f64(), Narrowing::default()),
            false => narrow::wrap(dtype, v.to_i64()),
        };
    }
}

fn codec<T: Narrow<W>, W: Pod>(dtype: DType) -> Codec<W> {
    Codec {
        dtype,
        load: load::<T, W>,
        store: store::<T, W>,
    }
}

macro_rules! wide {
    ($($w:ident),*) => { $(impl Wide for $w {
        fn codec(dtype: DType) -> Codec<$w> {
            match dtype {
                DType::F32 => codec::<f32, $w>(dtype),
                DType::F64 => codec::<f64, $w>(dtype),
                DType::F16 => codec::<f16, $w>(dtype),
                DType::BF16 => codec::<bf16, $w>(dtype),
                DType::I8 => codec::<i8, $w>(dtype),
                DType::I16 => codec::<i16, $w>(dtype),
                DType::I32 => codec::<i32, $w>(dtype),
                DType::I64 => codec::<i64, $w>(dtype),
                DType::U8 => codec::<u8, $w>(dtype),
                DType::U16 => codec::<u16, $w>(dtype),
                DType::U32 => codec::<u32, $w>(dtype),
                DType::U64 => codec::<u64, $w>(dtype),
                DType::Bool => codec::<Truth, $w>(dtype),
                DType::String => codec::<u32, $w>(dtype),
                // No kernel computes with complex numbers: inference and `rules` refuse them.
                DType::C64 | DType::C128 => codec::<u64, $w>(dtype),
                _narrow => Codec {
                    dtype,
                    load: load_narrow,
                    store: store_narrow,
                },
            }
        }
    })* };
}
wide!(f32, f64, i64, u64);

/// Calls a generic function with the type that `dtype` is computed in.
#[macro_export]
#[doc(hidden)]
macro_rules! by_class {
    ($dtype:expr, $w:ident => $body:expr) => {
        match $crate::elements::Class::of($dtype) {
            $crate::elements::Class::F32 => {
                type $w = f32;
                $body
            }
            $crate::elements::Class::F64 => {
                type $w = f64;
                $body
            }
            $crate::elements::Class::I64 => {
                type $w = i64;
                $body
            }
            $crate::elements::Class::U64 => {
                type $w = u64;
                $body
            }
        }
    };
}

/// Calls a generic function with an unsigned integer of as many bytes as the element type has, for
/// kernels that only move elements.
#[macro_export]
#[doc(hidden)]
macro_rules! by_size {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            8 => {
                type $t = u64;
                $body
            }
            _ => {
                type $t = u128;
                $body
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_and_its_neighbourhood() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            let wide = from_half(half);
            if half.is_nan() {
                assert!(wide.is_nan() && to_half(wide).is_nan());
                continue;
            }
            assert_eq!(wide.to_bits(), half.to_f32_const().to_bits());
            assert_eq!(to_half(wide).to_bits(), bits);
            // The tie to the next one, and both sides of it.
            let next = f16::from_bits(bits.wrapping_add(1)).to_f32_const();
            if next.is_finite() && wide.is_finite() {
                let tie = (wide + next) / 2.0;
                for v in [tie, tie.next_up(), tie.next_down()] {
                    assert_eq!(to_half(v), f16::from_f32_const(v), "{v}");
                }
            }
        }
    }

    #[test]
    fn float64_is_rounded_once() {
        // Ties between two numbers of the type, and the next float64 on both sides of them.
        let set = |dtype, v: f64| {
            let mut bytes = [0u8; 2];
            f64::codec(dtype).set(&mut bytes, 0, v);
            u16::from_le_bytes(bytes)
        };
        for bits in (0..0x7b00u16).step_by(7) {
            let (down, up) = (f16::from_bits(bits), f16::from_bits(bits + 1));
            let tie = (down.to_f64_const() + up.to_f64_const()) / 2.0;
            assert_eq!(set(DType::F16, tie.next_up()), bits + 1);
            assert_eq!(set(DType::F16, tie.next_down()), bits);
            assert_eq!(set(DType::F16, tie), bits + (bits & 1));
            assert_eq!(set(DType::F16, -tie.next_up()), 0x8000 | (bits + 1));
        }
        for bits in (0x0100..0x7f00u16).step_by(7) {
            let (down, up) = (bf16::from_bits(bits), bf16::from_bits(bits + 1));
            let tie = (down.to_f64_const() + up.to_f64_const()) / 2.0;
            assert_eq!(set(DType::BF16, tie.next_up()), bits + 1);
            assert_eq!(set(DType::BF16, tie.next_down()), bits);
        }
        assert_eq!(set(DType::F16, 1e300), 0x7c00);
        assert_eq!(set(DType::F16, -1e-300), 0x8000);
    }

    #[test]
    fn narrowing_wraps_and_rounds() {
        let mut bytes = [0u8; 2];
        f64::codec(DType::U8).set(&mut bytes, 0, -1.0);
        assert_eq!(bytes[0], 255);
        i64::codec(DType::I8).set(&mut bytes, 0, 300);
        assert_eq!(bytes[0] as i8, 44);
        f64::codec(DType::Bool).set(&mut bytes, 0, f64::NAN);
        assert_eq!(bytes[0], 1);
        let mut half = [0u16; 1];
        f32::codec(DType::F16).store(bytemuck::cast_slice_mut(&mut half), 0, &[1.0009766]);
        assert_eq!(half[0], 0x3c01);
    }
}
