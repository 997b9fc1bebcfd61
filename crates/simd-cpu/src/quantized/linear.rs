//! `float32` to bytes: QuantizeLinear with one scale, DynamicQuantizeLinear.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{DynamicQuantizeLinear, QuantizeLinear};
use kilim_core::{DType, Result};

use super::is_narrow;
use super::steps::Steps;
use crate::isa::{IntegerTask, Integers, Isa, Simd, Task};
use kilim_host::registry::KernelRegistry;
use kilim_host::{CpuRun, Io, Kernel, by};

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
    /// Whether there is a zero point.
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
        let range = if self.signed { [-128, 127] } else { [0, 255] };
        let (x, steps) = (io.input(0), Steps::new(zero, range));
        let scale = io.input(1)[0];
        to_bytes(io.cpu(), self.isa, x, scale, steps, io.output_bytes(0))
    }
}

struct Dynamic {
    isa: Isa,
}

impl Kernel for Dynamic {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<f32>(0);
        let [mut low, mut high] = [0.0f32; 2];
        io.cpu().pieces(x.len(), 1, |piece| {
            let [l, h] = self.isa.dispatch(RangeWithZero(&x[piece]));
            (low, high) = (low.min(l), high.max(h));
            Ok(())
        })?;
        let scale = match (high - low) / 255.0 {
            0.0 => 1.0,
            s => s,
        };
        let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even() as u8;
        let steps = Steps::new(zero.into(), [0, 255]);
        to_bytes(io.cpu(), self.isa, x, scale, steps, io.output_bytes(0))?;
        if io.has_output(1) {
            io.output::<f32>(1).fill(scale);
        }
        if io.has_output(2) {
            io.output::<u8>(2).fill(zero);
        }
        Ok(())
    }
}

/// Divides and rounds all elements.
fn to_bytes(
    cpu: &CpuRun,
    isa: Isa,
    from: &[f32],
    scale: f32,
    steps: Steps,
    to: &mut [u8],
) -> Result<()> {
    cpu.rows(from.len(), by(to, 1), 2, |piece, to, _| {
        isa.dispatch_integers(ToBytes {
            from: &from[piece],
            scale,
            steps,
            to,
        });
        Ok(())
    })
}

/// Divides and rounds.
struct ToBytes<'a> {
    from: &'a [f32],
    scale: f32,
    steps: Steps,
    to: &'a mut [u8],
}

impl IntegerTask for ToBytes<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<P: Integers>(self, _: P) {
        for (to, &v) in self.to.iter_mut().zip(self.from) {
            *to = self.steps.nearest(v / self.scale) as u8;
        }
    }
}

/// The smallest and the largest number, zero among them; what is no number is left out.
struct RangeWithZero<'a>(&'a [f32]);

impl Task for RangeWithZero<'_> {
    type Output = [f32; 2];

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> [f32; 2] {
        const VECTORS: usize = 4;
        let (mut low, mut high) = ([s.splat(0.0); VECTORS], [s.splat(0.0); VECTORS]);
        let blocks = self.0.chunks_exact(VECTORS * S::LANES);
        let rest = blocks.remainder();
        for block in blocks {
            for (i, (low, high)) in low.iter_mut().zip(&mut high).enumerate() {
                // SAFETY: a block has so many vectors.
                let x = unsafe { s.load(block.as_ptr().add(i * S::LANES)) };
                *low = s.min(*low, x);
                *high = s.max(*high, x);
            }
        }
        let mut range = [0.0f32; 2];
        let mut widen = |x: &[f32]| {
            for &x in x {
                range = [range[0].min(x), range[1].max(x)];
            }
        };
        for v in low.into_iter().chain(high) {
            let mut lanes = [0.0f32; 16];
            // SAFETY: no vector has more than 16 elements.
            unsafe { s.store(lanes.as_mut_ptr(), v) };
            widen(&lanes[..S::LANES]);
        }
        widen(rest);
        range
    }
}
