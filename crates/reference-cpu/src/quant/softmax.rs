//! QuantizedSoftmax, in fixed point (TFLite's `reference/softmax.h`).

use kilim_core::backend::NodeSpec;
use kilim_core::fixed::{divide_by_power, exp_of_negative, high_product, reciprocal_of_one_more};
use kilim_core::ops::QuantizedSoftmax;
use kilim_core::{DType, Result};

use crate::common::rules::required;
use crate::frame::{Build, Io, Kernel};

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
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            let largest = x.iter().fold(0, |m, &x| (x ^ self.flip).max(m));
            let exponential = |x: u8| self.exponentials[usize::from(largest - (x ^ self.flip))];
            let sum = x.iter().fold(0i32, |sum, &x| {
                let e = exponential(x).unwrap_or(0);
                sum.wrapping_add(divide_by_power(e, SUM_BITS))
            });
            // The largest element alone makes the sum one or more.
            let headroom = (sum as u32).leading_zeros();
            let rest = ((sum as u32) << headroom).wrapping_sub(1 << 31) as i32;
            let scale = reciprocal_of_one_more::<32>(rest);
            let shift = SUM_BITS + 31 - 8 - headroom;
            for (y, &x) in y.iter_mut().zip(x) {
                let p = match exponential(x) {
                    // Hundreds of equal elements leave nothing for each.
                    Some(e) if shift < 32 => {
                        divide_by_power(high_product::<32>(scale, e), shift).min(255)
                    }
                    _ => 0,
                };
                *y = p as u8 ^ self.flip;
            }
        }
        Ok(())
    }
}
