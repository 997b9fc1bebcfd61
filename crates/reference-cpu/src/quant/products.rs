//! Products and convolutions of quantised tensors, exact in 32-bit integers.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::{shape_error, unsupported};
use kilim_core::ops::{
    Activation, Affine, Conv, ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul, Requantize,
    clamped_range,
};
use kilim_core::{DType, Result};

use super::linear::quantize;
use crate::common::rules::{range, required};
use crate::common::{Codec, Wide};
use crate::conv::plain::{Channels, conv_loops};
use crate::conv::window::Loops;
use crate::frame::{Build, Io, Kernel};
use crate::matmul::product::Batched;

/// A quantised factor: the data, and the zero points that are taken off it.
struct Factor {
    input: usize,
    elements: usize,
    data: Codec<i64>,
    zero: Option<Zero>,
}

struct Zero {
    input: usize,
    codec: Codec<i64>,
    /// How many there are, and how many neighbours share each.
    count: usize,
    run: usize,
}

impl Factor {
    /// `run` neighbours share one of several zero points.
    fn new(node: &NodeSpec, input: usize, zero: usize, run: usize) -> Result<Factor> {
        let spec = required(node, input)?;
        if node.input(zero).is_some_and(|z| z.elements() == 0) {
            return Err(shape_error("a zero point without elements"));
        }
        Ok(Factor {
            input,
            elements: spec.elements(),
            data: i64::codec(spec.dtype),
            zero: node.input(zero).map(|z| Zero {
                input: zero,
                codec: i64::codec(z.dtype),
                count: z.elements().max(1),
                run: run.max(1),
            }),
        })
    }

    /// The data without its zero point.
    fn load(&self, io: &Io, out: &mut [i32]) {
        let data = io.input_bytes(self.input);
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.data.get(data, i) as i32;
        }
        if let Some(zero) = &self.zero {
            let bytes = io.input_bytes(zero.input);
            for (i, run) in out.chunks_mut(zero.run).enumerate() {
                let z = zero.codec.get(bytes, i % zero.count) as i32;
                run.iter_mut().for_each(|v| *v -= z);
            }
        }
    }
}

/// What is done with the two factors.
enum Combination {
    Matrices(Batched),
    Convolution { loops: Loops, channels: Channels },
}

/// What becomes of the sums.
enum Finish {
    Sums,
    Real(Scales),
    Fixed {
        requantize: Requantize,
        /// Neighbours in the output that share a channel.
        run: usize,
        y: Codec<i64>,
    },
}

impl Finish {
    fn fixed(requantize: Option<&Requantize>, run: usize) -> Finish {
        match requantize {
            None => Finish::Sums,
            Some(r) => Finish::Fixed {
                requantize: r.clone(),
                run: run.max(1),
                y: i64::codec(r.output),
            },
        }
    }
}

/// Scales of an output that is quantised again.
struct Scales {
    /// Inputs of the scales of both factors and of the output, and of its zero point.
    scales: [usize; 3],
    codecs: [Codec<f64>; 3],
    /// Second factors' scales: how many, and how many neighbours in the output share one.
    count: usize,
    run: usize,
    zero: Option<(usize, Codec<f64>)>,
    y: Codec<f64>,
    range: (f64, f64),
}

struct Product {
    a: Factor,
    b: Factor,
    outputs: usize,
    combination: Combination,
    bias: Option<usize>,
    finish: Finish,
}

impl Kernel for Product {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (a, rest) = io
            .scratch::<i32>(self.a.elements + self.b.elements + self.outputs)
            .split_at_mut(self.a.elements);
        let (b, sums) = rest.split_at_mut(self.b.elements);
        self.a.load(io, a);
        self.b.load(io, b);
        let bias = self.bias.and_then(|i| io.optional::<i32>(i));
        match &self.combination {
            Combination::Matrices(shapes) => {
                shapes.run(a, b, sums);
                if let Some(bias) = bias {
                    for row in sums.chunks_exact_mut(bias.len().max(1)) {
                        for (sum, b) in row.iter_mut().zip(bias) {
                            *sum = sum.wrapping_add(*b);
                        }
                    }
                }
            }
            Combination::Convolution { loops, channels } => {
                match bias {
                    Some(bias) => channels.fill(sums, bias),
                    None => sums.fill(0),
                }
                loops.run(a, b, sums);
            }
        }
        let r = match &self.finish {
            Finish::Sums => {
                io.output::<i32>(0).copy_from_slice(sums);
                return Ok(());
            }
            Finish::Fixed { requantize, run, y } => {
                let (to, channels) = (io.output_bytes(0), requantize.factors.len());
                for (i, &sum) in sums.iter().enumerate() {
                    let value = requantize.apply(i / run % channels, sum);
                    y.set(to, i, value.into());
                }
                return Ok(());
            }
            Finish::Real(scales) => scales,
        };
        let bytes = r.scales.map(|i| io.input_bytes(i));
        let scale = |which: usize, i: usize| r.codecs[which].get(bytes[which], i);
        let zero = r
            .zero
            .as_ref()
            .map_or(0.0, |(i, codec)| codec.get(io.input_bytes(*i), 0));
        let y = io.output_bytes(0);
        let mut at = 0;
        for (i, run) in sums.chunks(r.run).enumerate() {
            // In float32, as runtimes agree on: a tie in one precision is none in another.
            let product = scale(0, 0) as f32 * scale(1, i % r.count) as f32;
            let factor = product / scale(2, 0) as f32;
            for &sum in run {
                let value = f64::from(sum as f32 * factor);
                r.y.set(y, at, quantize(value, zero, r.range));
                at += 1;
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        (self.a.elements + self.b.elements + self.outputs) * size_of::<i32>()
    }
}

/// The zero points of a right-hand matrix: one for all, or one for each column.
fn matrices(
    node: &NodeSpec,
    [a, a_zero]: [usize; 2],
    [b, b_zero]: [usize; 2],
) -> Result<(Factor, Factor, Batched)> {
    let (sa, sb) = (required(node, a)?, required(node, b)?);
    let shapes = Batched::new(&sa.shape, &sb.shape, false)?;
    // A zero point for each row of `a` is `[m]` or `[.., m, 1]`; for each column of `b`, `[n]` or
    // `[.., 1, n]`.
    Ok((
        Factor::new(node, a, a_zero, shapes.k)?,
        Factor::new(node, b, b_zero, 1)?,
        shapes,
    ))
}

pub fn build_matmul_integer(
    op: &MatMulInteger,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (a, b, shapes) = matrices(node, [0, 2], [1, 3])?;
    Ok(Box::new(Product {
        a,
        b,
        outputs: node.outputs[0].elements(),
        combination: Combination::Matrices(shapes),
        bias: Some(4),
        finish: Finish::fixed(op.requantize.as_ref(), 1),
    }))
}

/// Where the scale of the output of a QLinear product is, and its zero point.
const RESULT: [usize; 2] = [6, 7];

/// Refuses an activation unless it clamps to bounds that are known.
pub fn accepts_clamp(activation: Activation, node: &NodeSpec) -> Result<(), Refusal> {
    match clamped(activation, node) {
        Some(_) => Ok(()),
        None => Err(Refusal::new(
            "an activation of a quantised product that is no clamp, or whose scale is not known",
        )),
    }
}

/// The smallest and the largest result of a QLinear product.
pub fn clamped(activation: Activation, node: &NodeSpec) -> Option<(f64, f64)> {
    let output = node.outputs.first()?.dtype;
    if activation == Activation::None {
        return range(output).ok();
    }
    let number = |i: usize, none: f32| match node.input(i) {
        None => Some(none),
        Some(spec) => match spec.value.as_ref()?.to_f64s().ok()?[..] {
            [one] => Some(one as f32),
            _ => None,
        },
    };
    let result = Affine {
        scale: number(RESULT[0], 1.0)?,
        zero: number(RESULT[1], 0.0)?,
    };
    let [low, high] = clamped_range(output, activation, result)?;
    Some((low.into(), high.into()))
}

/// The scales of data and weights at inputs `factors`; `run` neighbours in the output share one of the
/// second's.
fn scales(
    node: &NodeSpec,
    factors: [usize; 2],
    run: usize,
    activation: Activation,
) -> Result<Finish> {
    let (scales, zero) = ([factors[0], factors[1], RESULT[0]], RESULT[1]);
    let out = node.outputs[0].dtype;
    let mut codecs = [f64::codec(DType::F32); 3];
    for (codec, &i) in codecs.iter_mut().zip(&scales) {
        *codec = f64::codec(required(node, i)?.dtype);
    }
    if required(node, scales[0])?.elements() != 1 || required(node, scales[2])?.elements() != 1 {
        return Err(shape_error(
            "the scales of the first factor and of the output are scalars",
        ));
    }
    Ok(Finish::Real(Scales {
        scales,
        codecs,
        count: required(node, scales[1])?.elements().max(1),
        run: run.max(1),
        zero: node.input(zero).map(|s| (zero, f64::codec(s.dtype))),
        y: f64::codec(out),
        range: clamped(activation, node)
            .ok_or_else(|| unsupported("the activation of a quantised product"))?,
    }))
}

pub fn build_qlinear_matmul(
    op: &QLinearMatMul,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (a, b, shapes) = matrices(node, [0, 2], [3, 5])?;
    Ok(Box::new(Product {
        a,
        b,
        outputs: node.outputs[0].elements(),
        combination: Combination::Matrices(shapes),
        bias: Some(8),
        finish: scales(node, [1, 4], 1, op.activation)?,
    }))
}

/// Data and weights with their zero points; those of the weights may be one for each filter.
fn convolution(
    op: &Conv,
    node: &NodeSpec,
    [x, x_zero]: [usize; 2],
    [w, w_zero]: [usize; 2],
) -> Result<(Factor, Factor, Combination, usize)> {
    let (sx, sw) = (required(node, x)?, required(node, w)?);
    let (loops, channels) = conv_loops(op, &sx.shape, &sw.shape)?;
    let filter = sw.shape[1..].iter().product();
    Ok((
        Factor::new(node, x, x_zero, 1)?,
        Factor::new(node, w, w_zero, filter)?,
        Combination::Convolution { loops, channels },
        channels.run,
    ))
}

pub fn build_conv_integer(
    op: &ConvInteger,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (a, b, combination, run) = convolution(&op.conv, node, [0, 2], [1, 3])?;
    Ok(Box::new(Product {
        a,
        b,
        outputs: node.outputs[0].elements(),
        combination,
        bias: Some(4),
        finish: Finish::fixed(op.requantize.as_ref(), run),
    }))
}

pub fn build_qlinear_conv(
    op: &QLinearConv,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (a, b, combination, run) = convolution(&op.conv, node, [0, 2], [3, 5])?;
    Ok(Box::new(Product {
        a,
        b,
        outputs: node.outputs[0].elements(),
        combination,
        bias: Some(8),
        finish: scales(node, [1, 4], run, op.conv.activation)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{run_as, tensor};

    #[test]
    fn products_with_zero_points() {
        let a = tensor::<u8>(&[2, 2], &[11, 7, 3, 255]);
        let b = tensor::<i8>(&[2, 2], &[1, -4, 2, 5]);
        let za = tensor::<u8>(&[], &[12]);
        let zb = tensor::<i8>(&[2], &[0, 1]);
        let y = run_as::<i32>(&MatMulInteger::default(), &[&a, &b, &za, &zb], &[2, 2]);
        assert_eq!(y, [-11, -15, 477, 1017]);
    }
}
