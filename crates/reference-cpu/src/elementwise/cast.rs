//! Conversion of element types, by way of `float64` or a 64-bit integer. Both hold every narrower value, so
//! that a value is rounded once.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::narrow::{self, Narrowing};
use kilim_core::ops::{BitCast, Cast, CastLike};
use kilim_core::{DType, Result};
use kilim_host::elements::{BLOCK, Class, Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, by};

use super::unary::Copy;
use crate::text;

pub fn build_cast(op: &Cast, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    build(op.narrowing, node)
}

pub fn build_cast_like(op: &CastLike, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    build(op.narrowing, node)
}

fn build(narrowing: Narrowing, node: &NodeSpec) -> Result<Box<dyn Kernel>> {
    let from = required(node, 0)?.dtype;
    let to = node.outputs[0].dtype;
    Ok(match (from, to) {
        _ if from == to => Box::new(Copy),
        (DType::String, _) => text::parser(to),
        (_, DType::String) => text::writer(from),
        _ if to.is_narrow_float() && narrowing != Narrowing::default() => Box::new(Narrowed {
            from: f64::codec(from),
            to,
            narrowing,
        }),
        _ => match Class::of(from) {
            Class::F32 | Class::F64 => converter::<f64>(from, to),
            Class::I64 => converter::<i64>(from, to),
            Class::U64 => converter::<u64>(from, to),
        },
    })
}

fn converter<W: Wide>(from: DType, to: DType) -> Box<dyn Kernel> {
    Box::new(Convert::<W> {
        from: W::codec(from),
        to: W::codec(to),
    })
}

/// Operations of a conversion; those by way of types of less than a byte take the longest.
const COST: usize = 8;

struct Convert<W> {
    from: Codec<W>,
    to: Codec<W>,
}

impl<W: Wide> Kernel for Convert<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, n) = (io.input_bytes(0), io.input_len(0));
        let y = by(io.output_bytes(0), self.to.size());
        io.cpu().rows(n, y, COST, |piece, y, _| {
            let mut block = [W::zeroed(); BLOCK];
            for start in piece.clone().step_by(BLOCK) {
                let block = &mut block[..BLOCK.min(piece.end - start)];
                self.from.load(x, start, block);
                self.to.store(y, start - piece.start, block);
            }
            Ok(())
        })
    }
}

/// A cast to float8 in another way than codecs do it.
struct Narrowed {
    from: Codec<f64>,
    to: DType,
    narrowing: Narrowing,
}

impl Kernel for Narrowed {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input_bytes(0), io.output_bytes(0));
        io.cpu().rows(y.len(), by(y, 1), COST, |piece, y, _| {
            for (y, i) in y.iter_mut().zip(piece) {
                *y = narrow::encode(self.to, self.from.get(x, i), self.narrowing);
            }
            Ok(())
        })
    }
}

/// Takes a bit cast between types with as many bytes an element: elements of as many bits in a file have as
/// many bytes in memory.
pub fn accepts_bits(op: &BitCast, node: &NodeSpec) -> Result<(), Refusal> {
    match node.input(0) {
        Some(x) if x.dtype.bits() == op.to.bits() => Ok(()),
        _ => Err(Refusal::new(format!("BitCast to {}", op.to))),
    }
}

pub fn build_bits(op: &BitCast, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    required(node, 0)?;
    Ok(match op.to {
        DType::Bool => Box::new(Truths),
        to if to.bits() < 8 => Box::new(LowBits(to)),
        _ => Box::new(Copy),
    })
}

/// Bits that were a byte as a boolean.
struct Truths;

impl Kernel for Truths {
    fn run(&self, io: &mut Io) -> Result<()> {
        map_bytes(io, |x| u8::from(x != 0))
    }
}

/// A function of each byte.
fn map_bytes(io: &mut Io, f: impl Fn(u8) -> u8 + Sync) -> Result<()> {
    let (x, y) = (io.input_bytes(0), io.output_bytes(0));
    io.cpu().rows(y.len(), by(y, 1), COST, |piece, y, _| {
        for (y, &x) in y.iter_mut().zip(&x[piece]) {
            *y = f(x);
        }
        Ok(())
    })
}

/// The lowest bits of bytes, as the elements of a type of fewer bits.
struct LowBits(DType);

impl Kernel for LowBits {
    fn run(&self, io: &mut Io) -> Result<()> {
        map_bytes(io, |x| narrow::wrap(self.0, x.into()))
    }
}

#[cfg(test)]
mod tests {
    use kilim_core::Tensor;
    use kilim_core::narrow::{Overflow, PowerRounding};
    use kilim_host::testing::tensor;

    use super::*;
    use crate::testing::run;

    fn convert(op: &dyn kilim_core::Operator, x: &Tensor, to: DType) -> Tensor {
        run(op, &[Some(x)], &[(to, x.shape())]).unwrap().remove(0)
    }

    #[test]
    fn to_narrow_types_and_back() {
        let x = tensor(&[6], &[0.3f32, -1.5, 7.0, -9.0, 500.0, f32::NAN]);
        for (to, want) in [
            (DType::F8E4M3FN, [0.3125, -1.5, 7.0, -9.0, 448.0]),
            (DType::F8E5M2, [0.3125, -1.5, 7.0, -8.0, 512.0]),
            (DType::F4E2M1, [0.5, -1.5, 6.0, -6.0, 6.0]),
            (DType::F6E2M3, [0.25, -1.5, 7.0, -7.5, 7.5]),
            (DType::F6E3M2, [0.3125, -1.5, 7.0, -8.0, 28.0]),
            (DType::I4, [0.0, -1.0, 7.0, 7.0, 4.0]),
            (DType::U2, [0.0, 3.0, 3.0, 3.0, 0.0]),
        ] {
            let narrow = convert(&Cast::new(to), &x, to);
            assert_eq!(narrow.to_f64s().unwrap()[..5], want, "{to}");
            let wide = convert(&Cast::new(DType::F32), &narrow, DType::F32);
            assert_eq!(wide.to_f64s().unwrap()[..5], want, "{to}");
        }
    }

    #[test]
    fn without_saturation() {
        let x = tensor(&[3], &[500.0f32, -1e9, 3.0]);
        let narrowing = Narrowing {
            overflow: Overflow::Special,
            rounding: PowerRounding::Down,
        };
        let of = |to| {
            let y = convert(&Cast { to, narrowing }, &x, to);
            y.read().unwrap().to_vec()
        };
        assert_eq!(of(DType::F8E4M3FN), [0x7f, 0xff, 0x44]);
        assert_eq!(of(DType::F8E5M2), [0x60, 0xfc, 0x42]);
        assert_eq!(of(DType::F8E8M0), [135, 156, 128]);
    }

    #[test]
    fn bits_under_another_name() {
        let x = tensor(&[2], &[1.0f32, -0.0]);
        let bits = convert(&BitCast { to: DType::U32 }, &x, DType::U32);
        assert_eq!(bits.as_slice::<u32>().unwrap(), [0x3f80_0000, 0x8000_0000]);
        let x = Tensor::from_packed(DType::U4, &[3], &[0x7f, 0x08]).unwrap();
        let signed = convert(&BitCast { to: DType::I4 }, &x, DType::I4);
        assert_eq!(signed.to_i64s().unwrap(), [-1, 7, -8]);
        let back = convert(&BitCast { to: DType::U4 }, &signed, DType::U4);
        assert_eq!(back, x);
        let floats = convert(&BitCast { to: DType::F4E2M1 }, &signed, DType::F4E2M1);
        assert_eq!(floats.to_f64s().unwrap(), [-6.0, 6.0, 0.0]);
        let bytes = tensor(&[3], &[0u8, 1, 8]);
        let truths = convert(&BitCast { to: DType::Bool }, &bytes, DType::Bool);
        assert_eq!(truths.read().unwrap(), [0, 1, 1]);
    }
}
