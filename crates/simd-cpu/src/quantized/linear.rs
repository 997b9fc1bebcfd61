//! `float32` to bytes: QuantizeLinear with one scale, DynamicQuantizeLinear.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{DynamicQuantizeLinear, QuantizeLinear};
use kilim_core::{DType, Result};

use super::is_narrow;
use crate::isa::{Isa, PairTask, Pairs};
use kilim_reference_cpu::frame::{Io, Kernel};
use kilim_reference_cpu::registry::KernelRegistry;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add::<QuantizeLinear>(
        |_, node| match is_single(node, 0) && is_single(node, 1) && takes_one_scale(node) {
            true => Ok(()),
            false => Err(Refusal::new(
                "the SIMD quantisation: not float32 to 8 bits, or several scales",
            )),
        },
        |_, node, _| Ok(Box::new(Quantize::new(node, Isa::best()))),
    );
    registry.add::<DynamicQuantizeLinear>(
        |_, node| match is_single(node, 0) {
            true => Ok(()),
            false => Err(Refusal::new("the SIMD quantisation: not float32")),
        },
        |_, _, _| Ok(Box::new(Dynamic { isa: Isa::best() })),
    );
}

fn is_single(node: &NodeSpec, i: usize) -> bool {
    node.input(i).is_some_and(|s| s.dtype == DType::F32)
}

fn takes_one_scale(node: &NodeSpec) -> bool {
    is_narrow(node.outputs[0].dtype) && node.input(1).is_some_and(|s| s.elements() == 1)
}

pub(super) struct Quantize {
    isa: Isa,
    signed: bool,
    /// There is a zero point.
    moved: bool,
}

impl Quantize {
    pub(super) fn new(node: &NodeSpec, isa: Isa) -> Quantize {
        Quantize {
            isa,
            signed: node.outputs[0].dtype == DType::I8,
            moved: node.input(2).is_some(),
        }
    }
}

impl Kernel for Quantize {
    fn run(&self, io: &mut Io) -> Result<()> {
        let zero = match (self.moved, self.signed) {
            (false, _) => 0,
            (true, true) => io.input::<i8>(2)[0].into(),
            (true, false) => io.input::<u8>(2)[0].into(),
        };
        self.isa.dispatch_pairs(ToBytes {
            from: io.input(0),
            scale: io.input(1)[0],
            zero,
            low: if self.signed { -128 } else { 0 },
            to: io.output_bytes(0),
        });
        Ok(())
    }
}

struct Dynamic {
    isa: Isa,
}

impl Kernel for Dynamic {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<f32>(0);
        let [low, high] = self.isa.dispatch_pairs(RangeWithZero(x));
        let scale = match (high - low) / 255.0 {
            0.0 => 1.0,
            s => s,
        };
        let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even() as u8;
        self.isa.dispatch_pairs(ToBytes {
            from: x,
            scale,
            zero: zero.into(),
            low: 0,
            to: io.output_bytes(0),
        });
        io.output::<f32>(1).fill(scale);
        io.output::<u8>(2).fill(zero);
        Ok(())
    }
}

/// Divides, rounds to the nearest, ties to even, and saturates to a byte whose smallest number is `low`. NaN
/// becomes the zero point.
struct ToBytes<'a> {
    from: &'a [f32],
    scale: f32,
    zero: i16,
    low: i16,
    to: &'a mut [u8],
}

impl PairTask for ToBytes<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<P: Pairs>(self, _: P) {
        // The bits of a small number with 1.5 * 2^23 added to it count up from those of the latter.
        const ROUND: f32 = 12_582_912.0;
        let low = f32::from(self.low - self.zero);
        let high = low + 255.0;
        let zero = i32::from(self.zero).wrapping_sub(ROUND.to_bits() as i32);
        for (to, &v) in self.to.iter_mut().zip(self.from) {
            let v = v / self.scale;
            let v = if v.is_nan() { 0.0 } else { v };
            let v = if v < low { low } else { v };
            let v = if v > high { high } else { v };
            *to = ((v + ROUND).to_bits() as i32).wrapping_add(zero) as u8;
        }
    }
}

/// The smallest and the largest number, zero among them; what is no number is left out.
struct RangeWithZero<'a>(&'a [f32]);

impl PairTask for RangeWithZero<'_> {
    type Output = [f32; 2];

    #[inline(always)]
    fn run<P: Pairs>(self, _: P) -> [f32; 2] {
        const LANES: usize = 32;
        let (mut low, mut high) = ([0f32; LANES], [0f32; LANES]);
        let whole = self.0.chunks_exact(LANES);
        let rest = whole.remainder();
        for chunk in whole.chain([rest]) {
            for ((low, high), &x) in low.iter_mut().zip(&mut high).zip(chunk) {
                *low = if x < *low { x } else { *low };
                *high = if x > *high { x } else { *high };
            }
        }
        [
            low.into_iter().fold(0.0, f32::min),
            high.into_iter().fold(0.0, f32::max),
        ]
    }
}
