//! QuantizedSoftmax, in fixed point (TFLite's `reference/softmax.h`).

use kilim_core::backend::NodeSpec;
use kilim_core::fixed::{divide_by_power, exp_of_negative, high_product, reciprocal_of_one_more};
use kilim_core::ops::QuantizedSoftmax;
use kilim_core::{DType, Result};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

/// Bits before the point of a scaled difference, and of a sum of exponentials.
const DIFFERENCE_BITS: u32 = 5;
const SUM_BITS: u32 = 12;

pub fn build(op: &QuantizedSoftmax, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    // Differences are few: their exponentials are all computed beforehand.
    let exponentials = (0..256)
        .map(|d: i32| {
            let scaled = op.factor.apply(-d);
            (-d >= op.smallest).then(|| exp_of_negative::<32>(scaled, DIFFERENCE_BITS))
        })
        .collect();
    Ok(Box::new(Softmax {
        exponentials,
        length: x.shape.last().copied().unwrap_or(1),
        // Turns the order of signed bytes into that of unsigned ones.
        flip: if x.dtype == DType::I8 { 0x80 } else { 0 },
    }))
}

struct Softmax {
    /// For each distance from the largest element; `None` where it counts as nothing.
    exponentials: Vec<Option<i32>>,
    length: usize,
    flip: u8,
}

impl Kernel for Softmax {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input_bytes(0), io.output_bytes(0));
        let n = self.length.max(1);
        io.cpu()
            .rows(y.len() / n, by(y, n), 8 * n, |piece, y, cpu| {
                let lines = x[piece.start * n..].chunks_exact(n);
                let mut lines = lines.zip(y.chunks_exact_mut(n));
                lines.try_for_each(|(x, y)| self.line(cpu, x, y))
            })
    }
}

impl Softmax {
    fn line(&self, cpu: &CpuRun, x: &[u8], y: &mut [u8]) -> Result<()> {
        let (mut largest, mut sum) = (0, 0i32);
        cpu.pieces(x.len(), 1, |part| {
            largest = x[part].iter().fold(largest, |m, &x| (x ^ self.flip).max(m));
            Ok(())
        })?;
        let exponential = |x: u8| self.exponentials[usize::from(largest - (x ^ self.flip))];
        cpu.pieces(x.len(), 2, |part| {
            for &x in &x[part] {
                let e = exponential(x).unwrap_or(0);
                sum = sum.wrapping_add(divide_by_power(e, SUM_BITS));
            }
            Ok(())
        })?;
        // The largest element alone makes the sum one or more.
        let headroom = (sum as u32).leading_zeros();
        let rest = (sum as u32).wrapping_shl(headroom).wrapping_sub(1 << 31) as i32;
        let scale = reciprocal_of_one_more::<32>(rest);
        let shift = SUM_BITS + 31 - 8 - headroom;
        cpu.pieces(x.len(), 4, |part| {
            for (y, &x) in y[part.clone()].iter_mut().zip(&x[part]) {
                let p = match exponential(x) {
                    // Hundreds of equal elements leave nothing for each.
                    Some(e) if shift < 32 => {
                        divide_by_power(high_product::<32>(scale, e), shift).min(255)
                    }
                    _ => 0,
                };
                *y = p as u8 ^ self.flip;
            }
            Ok(())
        })
    }
}
