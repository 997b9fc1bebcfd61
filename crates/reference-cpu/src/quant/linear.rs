//! QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.

use std::ops::Range;

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{DequantizeLinear, DynamicQuantizeLinear, Granularity, QuantizeLinear};
use kilim_core::{DType, Result};
use kilim_host::elements::{BLOCK, Codec, Wide};
use kilim_host::rules::{range, required};
use kilim_host::{Build, CpuRun, Io, Kernel, by};

/// Rounds to the nearest, ties to even, and saturates. NaN becomes the zero point.
pub fn quantize(v: f64, zero: f64, (low, high): (f64, f64)) -> f64 {
    let v = if v.is_nan() { 0.0 } else { v };
    (v.round_ties_even() + zero).clamp(low, high)
}

/// Scales and zero points of a tensor.
struct Parameters {
    granularity: Granularity,
    /// Neighbours that share a scale.
    run: usize,
    scale: Codec<f64>,
    zero: Option<Codec<f64>>,
}

impl Parameters {
    fn new(node: &NodeSpec, axis: i64, block: usize) -> Result<Parameters> {
        let (x, scale) = (required(node, 0)?, required(node, 1)?);
        let granularity = Granularity::new(&x.shape, &scale.shape, axis, block)?;
        let run = match granularity {
            Granularity::Tensor => x.elements(),
            Granularity::Axis { inner, .. } => inner,
            Granularity::Block { .. } => 1,
        };
        Ok(Parameters {
            granularity,
            run: run.max(1),
            scale: f64::codec(scale.dtype),
            zero: node.input(2).map(|s| f64::codec(s.dtype)),
        })
    }

    /// Computes the output, whose elements have `size` bytes: calls `work` with ranges of elements of one scale and
    /// zero point, with these, and with the bytes of the output from the first of them on.
    fn each(
        &self,
        io: &mut Io,
        size: usize,
        work: impl Fn(Range<usize>, [f64; 2], &mut [u8]) + Sync,
    ) -> Result<()> {
        let scales = io.input_bytes(1);
        let zeros = self.zero.as_ref().map(|codec| (codec, io.input_bytes(2)));
        let (n, run) = (io.input_len(0), self.run);
        let y = by(io.output_bytes(0), size);
        io.cpu().rows(n, y, COST, |piece, y, _| {
            let mut rest = piece.clone();
            while !rest.is_empty() {
                let end = rest.end.min((rest.start / run + 1).saturating_mul(run));
                let g = self.granularity.index(rest.start);
                let scale = self.scale.get(scales, g);
                let zero = zeros.map_or(0.0, |(codec, bytes)| codec.get(bytes, g));
                let y = &mut y[(rest.start - piece.start) * size..];
                work(rest.start..end, [scale, zero], y);
                rest.start = end;
            }
            Ok(())
        })
    }
}

/// Operations of quantising an element that has a scale of its own.
const COST: usize = 16;

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
        let x = io.input_bytes(0);
        let size = self.y.size();
        (self.parameters).each(io, size, |range, [scale, zero], y| {
            for i in range.clone() {
                let v = self.x.get(x, i);
                let v = match self.single {
                    true => f64::from(v as f32 / scale as f32),
                    false => v / scale,
                };
                let v = match self.range {
                    Some(range) => quantize(v, zero, range),
                    None => v + zero,
                };
                self.y.set(y, i - range.start, v);
            }
        })
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
        let x = io.input_bytes(0);
        let size = self.y.size();
        (self.parameters).each(io, size, |range, [scale, zero], y| {
            if self.single && self.parameters.run > 1 {
                let mut block = [0.0f32; BLOCK];
                let (scale, zero) = (scale as f32, zero as f32);
                for start in range.clone().step_by(BLOCK) {
                    let block = &mut block[..BLOCK.min(range.end - start)];
                    self.narrow.load(x, start, block);
                    block.iter_mut().for_each(|v| *v = (*v - zero) * scale);
                    self.y32.store(y, start - range.start, block);
                }
                return;
            }
            for i in range.clone() {
                let v = (self.x.get(x, i) - zero) * scale;
                self.y.set(y, i - range.start, v);
            }
        })
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
    /// Scale and zero point for `len` numbers, which `number` gives by index.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn parameters(cpu: &CpuRun, len: usize, number: impl Fn(usize) -> f32) -> Result<Dynamic> {
        let (mut low, mut high) = (0f32, 0f32);
        cpu.pieces(len, 2, |piece| {
            for x in piece.map(&number) {
                // What is no number is left out.
                (low, high) = (low.min(x), high.max(x));
            }
            Ok(())
        })?;
        let scale = match (high - low) / 255.0 {
            0.0 => 1.0,
            s => s,
        };
        let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even();
        Ok(Dynamic { scale, zero })
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
        let (cpu, x) = (io.cpu(), io.input::<f32>(0));
        let parameters = Dynamic::parameters(cpu, x.len(), |i| x[i])?;
        cpu.rows(x.len(), by(io.output::<u8>(0), 1), COST, |piece, y, _| {
            for (y, &x) in y.iter_mut().zip(&x[piece]) {
                *y = parameters.stored(x);
            }
            Ok(())
        })?;
        if io.has_output(1) {
            io.output::<f32>(1).fill(parameters.scale);
        }
        if io.has_output(2) {
            io.output::<u8>(2).fill(parameters.zero as u8);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run_as, run_f32};
    use kilim_host::testing::tensor;

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
