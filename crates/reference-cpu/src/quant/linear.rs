//! QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.

use std::ops::Range;

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{DequantizeLinear, DynamicQuantizeLinear, Granularity, QuantizeLinear};
use kilim_core::{DType, Result};

use crate::common::rules::{range, required};
use crate::common::{BLOCK, Codec, Wide};
use crate::frame::{Build, Io, Kernel};

/// Rounds to the nearest, ties to even, and saturates. NaN becomes the zero point.
pub fn quantize(v: f64, zero: f64, (low, high): (f64, f64)) -> f64 {
    let v = if v.is_nan() { 0.0 } else { v };
    (v.round_ties_even() + zero).clamp(low, high)
}

/// Scales and zero points of a tensor.
struct Parameters {
    granularity: Granularity,
    scale: Codec<f64>,
    zero: Option<Codec<f64>>,
}

impl Parameters {
    fn new(node: &NodeSpec, axis: i64, block: usize) -> Result<Parameters> {
        let (x, scale) = (required(node, 0)?, required(node, 1)?);
        Ok(Parameters {
            granularity: Granularity::new(&x.shape, &scale.shape, axis, block)?,
            scale: f64::codec(scale.dtype),
            zero: node.input(2).map(|s| f64::codec(s.dtype)),
        })
    }

    /// Calls `f` with each range of elements of one scale and zero point, and these.
    fn each(&self, io: &Io, mut f: impl FnMut(Range<usize>, f64, f64)) {
        let scales = io.input_bytes(1);
        let zeros = self.zero.as_ref().map(|codec| (codec, io.input_bytes(2)));
        let n = io.input_len(0);
        let run = match self.granularity {
            Granularity::Tensor => n,
            Granularity::Axis { inner, .. } => inner,
            Granularity::Block { .. } => 1,
        };
        for start in (0..n).step_by(run.max(1)) {
            let g = self.granularity.index(start);
            let scale = self.scale.get(scales, g);
            let zero = zeros.map_or(0.0, |(codec, bytes)| codec.get(bytes, g));
            f(start..start + run, scale, zero);
        }
    }
}

pub fn build_quantize(
    op: &QuantizeLinear,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?.dtype;
    let out = node.outputs[0].dtype;
    Ok(Box::new(Quantize {
        parameters: Parameters::new(node, op.axis, op.block)?,
        // The quotient is that of the data's precision: ties are decided by it.
        single: x != DType::F64,
        x: f64::codec(x),
        y: f64::codec(out),
        range: match out.is_narrow_float() {
            true => None,
            false => Some(range(out)?),
        },
    }))
}

struct Quantize {
    parameters: Parameters,
    single: bool,
    x: Codec<f64>,
    y: Codec<f64>,
    /// `None` where the codec rounds and saturates.
    range: Option<(f64, f64)>,
}

impl Kernel for Quantize {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input_bytes(0), io.output_bytes(0));
        self.parameters.each(io, |range, scale, zero| {
            for i in range {
                let v = self.x.get(x, i);
                let v = match self.single {
                    true => f64::from(v as f32 / scale as f32),
                    false => v / scale,
                };
                let v = match self.range {
                    Some(range) => quantize(v, zero, range),
                    None => v + zero,
                };
                self.y.set(y, i, v);
            }
        });
        Ok(())
    }
}

pub fn build_dequantize(
    op: &DequantizeLinear,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (x, y) = (required(node, 0)?.dtype, node.outputs[0].dtype);
    Ok(Box::new(Dequantize {
        parameters: Parameters::new(node, op.axis, op.block)?,
        single: x.size() <= 2 && y != DType::F64,
        narrow: f32::codec(x),
        y32: f32::codec(y),
        x: f64::codec(x),
        y: f64::codec(y),
    }))
}

struct Dequantize {
    parameters: Parameters,
    /// The difference to the zero point is exact in `float32`.
    single: bool,
    narrow: Codec<f32>,
    y32: Codec<f32>,
    x: Codec<f64>,
    y: Codec<f64>,
}

impl Kernel for Dequantize {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input_bytes(0), io.output_bytes(0));
        let mut block = [0.0f32; BLOCK];
        self.parameters.each(io, |range, scale, zero| {
            if self.single && range.len() > 1 {
                let (scale, zero) = (scale as f32, zero as f32);
                for start in range.clone().step_by(BLOCK) {
                    let block = &mut block[..BLOCK.min(range.end - start)];
                    self.narrow.load(x, start, block);
                    block.iter_mut().for_each(|v| *v = (*v - zero) * scale);
                    self.y32.store(y, start, block);
                }
                return;
            }
            for i in range {
                self.y.set(y, i, (self.x.get(x, i) - zero) * scale);
            }
        });
        Ok(())
    }
}

pub fn build_dynamic(
    _: &DynamicQuantizeLinear,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    match required(node, 0)?.dtype {
        DType::F32 => Ok(Box::new(DynamicKernel)),
        other => Err(kilim_core::error::dtype_error(format!(
            "DynamicQuantizeLinear of {other}"
        ))),
    }
}

/// Scale and zero point that DynamicQuantizeLinear finds for numbers.
pub struct Dynamic {
    scale: f32,
    zero: f32,
}

impl Dynamic {
    pub fn parameters(numbers: impl Iterator<Item = f32>) -> Dynamic {
        // What is no number is left out.
        let (low, high) = numbers.fold((0f32, 0f32), |(low, high), x| (low.min(x), high.max(x)));
        let scale = match (high - low) / 255.0 {
            0.0 => 1.0,
            s => s,
        };
        let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even();
        Dynamic { scale, zero }
    }

    fn stored(&self, x: f32) -> u8 {
        quantize((x / self.scale).into(), self.zero.into(), (0.0, 255.0)) as u8
    }

    /// What the byte of `x` stands for.
    pub fn rounded(&self, x: f32) -> f32 {
        (f32::from(self.stored(x)) - self.zero) * self.scale
    }
}

struct DynamicKernel;

impl Kernel for DynamicKernel {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<f32>(0);
        let parameters = Dynamic::parameters(x.iter().copied());
        for (y, &x) in io.output::<u8>(0).iter_mut().zip(x) {
            *y = parameters.stored(x);
        }
        io.output::<f32>(1).fill(parameters.scale);
        io.output::<u8>(2).fill(parameters.zero as u8);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{run_as, run_f32, tensor};

    #[test]
    fn rounds_to_even_and_saturates() {
        let x = tensor::<f32>(&[6], &[0.0, 1.0, 3.0, -1.0, 1000.0, -1000.0]);
        let scale = tensor::<f32>(&[], &[2.0]);
        let zero = tensor::<u8>(&[], &[128]);
        let op = QuantizeLinear {
            axis: 1,
            block: 0,
            output: None,
        };
        let y = run_as::<u8>(&op, &[&x, &scale, &zero], &[6]);
        assert_eq!(y, [128, 128, 130, 128, 255, 0]);
        let op = DequantizeLinear { axis: 1, block: 0 };
        let back = run_f32(&op, &[&tensor(&[6], &y), &scale, &zero], &[6]);
        assert_eq!(back, [0.0, 0.0, 4.0, 0.0, 254.0, -256.0]);
    }

    #[test]
    fn per_axis_and_per_block() {
        let x = tensor::<i8>(&[2, 4], &[1, 2, 3, 4, 5, 6, 7, 8]);
        let op = DequantizeLinear { axis: 0, block: 0 };
        let s = tensor::<f32>(&[2], &[1.0, 10.0]);
        assert_eq!(
            run_f32(&op, &[&x, &s], &[2, 4]),
            [1.0, 2.0, 3.0, 4.0, 50.0, 60.0, 70.0, 80.0]
        );
        let op = DequantizeLinear { axis: 1, block: 2 };
        let s = tensor::<f32>(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(
            run_f32(&op, &[&x, &s], &[2, 4]),
            [1.0, 2.0, 6.0, 8.0, 15.0, 18.0, 28.0, 32.0]
        );
    }
}
