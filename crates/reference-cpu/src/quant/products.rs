//! Products and convolutions of quantised tensors, exact in 32-bit integers.

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::shape_error;
use kilim_core::ops::{
    Conv, ConvInteger, MatMulInteger, MatMulIntegerToFloat, QLinearConv, QLinearMatMul,
};
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

use super::finish::{Finish, add_bias};
use crate::conv::plain::{Channels, conv_loops};
use crate::conv::window::Loops;
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
    fn load(&self, cpu: &CpuRun, io: &Io, out: &mut [i32]) -> Result<()> {
        let data = io.input_bytes(self.input);
        let zero = self.zero.as_ref().map(|z| (z, io.input_bytes(z.input)));
        cpu.rows(out.len(), by(out, 1), COST, |piece, out, _| {
            for (out, i) in out.iter_mut().zip(piece) {
                let zero = zero.map_or(0, |(z, bytes)| z.codec.get(bytes, i / z.run % z.count));
                *out = (self.data.get(data, i) as i32).wrapping_sub(zero as i32);
            }
            Ok(())
        })
    }
}

/// Operations of reading an element and its zero point.
const COST: usize = 16;

/// What is done with the two factors.
enum Combination {
    Matrices(Batched),
    Convolution { loops: Loops, channels: Channels },
}

struct Product {
    a: Factor,
    b: Factor,
    outputs: usize,
    combination: Combination,
    bias: Option<usize>,
    finish: Finish,
}

impl Product {
    /// Elements of both factors and of the sums.
    fn room(&self) -> usize {
        let factors = self.a.elements.saturating_add(self.b.elements);
        factors.saturating_add(self.outputs)
    }
}

impl Kernel for Product {
    fn run(&self, io: &mut Io) -> Result<()> {
        let cpu = io.cpu();
        let room = io.scratch::<i32>(self.room());
        let (a, rest) = room.split_at_mut(self.a.elements);
        let (b, sums) = rest.split_at_mut(self.b.elements);
        self.a.load(cpu, io, a)?;
        self.b.load(cpu, io, b)?;
        let bias = self.bias.and_then(|i| io.optional::<i32>(i));
        match &self.combination {
            Combination::Matrices(shapes) => {
                shapes.run(cpu, a, b, sums)?;
                if let Some(bias) = bias {
                    add_bias(cpu, sums, bias)?;
                }
            }
            Combination::Convolution { loops, channels } => {
                match bias {
                    Some(bias) => channels.fill(cpu, sums, bias)?,
                    None => cpu.fill(sums, 0)?,
                }
                loops.run(cpu, a, b, sums)?;
            }
        }
        self.finish.apply(io, sums)
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<i32>(self.room())
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

pub fn build_matmul_integer_to_float(
    _: &MatMulIntegerToFloat,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (a, b, shapes) = matrices(node, [0, 4], [1, 5])?;
    let finish = Finish::floats(node, [2, 3], 6, shapes.n)?;
    Ok(Box::new(Product {
        a,
        b,
        outputs: node.outputs[0].elements(),
        combination: Combination::Matrices(shapes),
        bias: None,
        finish,
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
        finish: Finish::real(node, 1, op.activation)?,
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
        finish: Finish::real(node, run, op.conv.activation)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_as;
    use kilim_host::testing::tensor;

    #[test]
    fn products_with_zero_points() {
        let a = tensor::<u8>(&[2, 2], &[11, 7, 3, 255]);
        let b = tensor::<i8>(&[2, 2], &[1, -4, 2, 5]);
        let za = tensor::<u8>(&[], &[12]);
        let zb = tensor::<i8>(&[2], &[0, 1]);
        let y = run_as::<i32>(&MatMulInteger::default(), &[&a, &b, &za, &zb], &[2, 2]);
        assert_eq!(y, [-11, -15, 477, 1017]);
        let scales = [tensor::<f32>(&[], &[0.1]), tensor::<f32>(&[2], &[0.3, 0.7])];
        let bias = tensor::<f32>(&[2], &[0.25, -1.0]);
        let inputs = [&a, &b, &scales[0], &scales[1], &za, &zb, &bias];
        let [left, right] = [0.1f32 * 0.3, 0.1 * 0.7];
        for (inputs, bias) in [(&inputs[..], [0.25, -1.0]), (&inputs[..6], [-0.0; 2])] {
            let y = run_as::<f32>(&MatMulIntegerToFloat, inputs, &[2, 2]);
            let first = [-11.0 * left + bias[0], -15.0 * right + bias[1]];
            let second = [477.0 * left + bias[0], 1017.0 * right + bias[1]];
            assert_eq!(y, [first, second].concat());
        }
    }
}
