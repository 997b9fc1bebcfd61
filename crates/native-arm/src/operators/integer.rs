//! Products and convolutions of quantised tensors. ACL multiplies and sums, exactly, in 32 bits; what becomes
//! of the sums is computed as the reference kernels do it. ACL's own convolutions of quantised tensors scale
//! sums in another way, so that their bytes differ.

use bytemuck::cast_slice_mut;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{
    Conv, ConvGeometry, ConvInteger, MatMulGeometry, MatMulInteger, MatMulIntegerToFloat,
    QLinearConv, QLinearMatMul, WindowAxis,
};
use kilim_core::{DType, Operator, Result};
use kilim_host::Scratch;
use kilim_host::registry::KernelRegistry;
use kilim_host::{Build, Io, Kernel};
use kilim_reference_cpu::quant::{Finish, accepts_clamp, add_bias};

use super::convolution::two_axes;
use super::quantized_convolution::QuantizedConvolution;
use super::{as_is, constant, input, refuse, resolved};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{ElementType, IntegerProductInfo};
use crate::kernel::{Step, Target, ask, kernel, or_native, unsupported};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, ConvInteger>(registry);
    add::<A, MatMulInteger>(registry);
    add::<A, MatMulIntegerToFloat>(registry);
    add::<A, QLinearConv>(registry);
    add::<A, QLinearMatMul>(registry);
}

fn add<A: Target, T: IntegerProduct + Operator>(registry: &mut KernelRegistry) {
    registry.add::<T>(
        |op, node| {
            let refusal = match product::<A, T>(op, node) {
                Ok(_) => return Ok(()),
                Err(refusal) => refusal,
            };
            or_native::<A>(refusal, op.native(node)).map(drop)
        },
        |op, node, _: &mut Build| {
            let product = match product::<A, T>(op, node) {
                Ok(product) => product,
                Err(refusal) => {
                    let calls = or_native::<A>(refusal, op.native(node));
                    return kernel::<A>(&calls.map_err(unsupported)?, node);
                }
            };
            Ok(Box::new(ProductKernel {
                step: Step::new::<A>(&product.call, node)?,
                finish: op.finish(node)?,
                product,
            }))
        },
    );
}

/// The product that ACL agrees to.
fn product<A: Target, T: IntegerProduct>(op: &T, node: &NodeSpec) -> Result<Product, Refusal> {
    let product = op.product(node)?;
    ask::<A>(&product.call).map(|()| product)
}

/// An operator that is a product of two matrices of bytes.
trait IntegerProduct {
    /// # Errors
    /// Where ACL has no such product.
    fn product(&self, node: &NodeSpec) -> Result<Product, Refusal>;
    fn finish(&self, node: &NodeSpec) -> Result<Finish>;

    /// The calls in ACL's own arithmetic of quantised tensors, see [`Lower::native`].
    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        let _ = node;
        None
    }
}

/// Where the tensors of a product are among the inputs of its node.
pub struct Inputs {
    pub data: usize,
    pub weights: usize,
    /// The zero points of data and weights.
    pub zero_points: [usize; 2],
    /// The bias in whole numbers.
    pub bias: Option<usize>,
}

pub const INTEGER: Inputs = Inputs {
    data: 0,
    weights: 1,
    zero_points: [2, 3],
    bias: Some(4),
};

pub const QLINEAR: Inputs = Inputs {
    data: 0,
    weights: 3,
    zero_points: [2, 5],
    bias: Some(8),
};

pub const TO_FLOAT: Inputs = Inputs {
    data: 0,
    weights: 1,
    zero_points: [4, 5],
    bias: None,
};

/// `[rows, k]` by `[k, n]`.
struct Product {
    call: Call,
    /// How data that are no matrix yet become one.
    unfold: Option<Unfold>,
    rows: usize,
    k: usize,
    n: usize,
    data: usize,
    bias: Option<usize>,
}

impl Product {
    /// `order` is that of the dimensions of constant weights as a matrix; computed ones are one already. This
    /// function of ACL adds offsets, which are zero points with the sign changed.
    fn new(
        node: &NodeSpec,
        at: &Inputs,
        [rows, k, n]: [usize; 3],
        order: Vec<usize>,
        unfold: Option<Unfold>,
    ) -> Result<Product, Refusal> {
        let (data, weights) = (input(node, at.data)?, input(node, at.weights)?);
        let [data_zero, weights_zero] = at.zero_points.map(|i| zero_point(node, i));
        let left = Operand {
            source: Source::Input(at.data),
            form: bytes(data, &[rows, k])?.with_scales(vec![1.0], -data_zero?),
        };
        let right = Operand {
            source: match weights.value {
                Some(_) => Source::Constant {
                    input: at.weights,
                    order,
                },
                None => Source::Input(at.weights),
            },
            form: weight_form(data, weights, [k, n], weights_zero?)?,
        };
        let sums = Form::of_type(ElementType::S32, &[rows, n])?;
        let inputs = vec![Some(left), Some(right)];
        Ok(Product {
            call: Call::new(IntegerProductInfo::default(), inputs, sums),
            unfold,
            rows,
            k,
            n,
            data: at.data,
            bias: at.bias,
        })
    }

    fn matrices(node: &NodeSpec, at: &Inputs) -> Result<Product, Refusal> {
        let (a, b) = (input(node, at.data)?, input(node, at.weights)?);
        let g = resolved(MatMulGeometry::new(&a.shape, &b.shape, false))?;
        if b.shape.len() < 2 || g.b_batch.iter().any(|&d| d != 1) {
            return refuse("a second factor that is not one matrix");
        }
        let rows = g.a_batch.iter().product::<usize>() * g.m;
        Product::new(node, at, [rows, g.k, g.n], as_is(b), None)
    }

    fn convolution(op: &Conv, node: &NodeSpec, at: &Inputs) -> Result<Product, Refusal> {
        let (x, w) = (
            input(node, at.data)?,
            constant(node, at.weights, "weights")?,
        );
        let g = resolved(ConvGeometry::new(op, &x.shape, &w.shape))?;
        if g.groups != 1 {
            return refuse(
                "ACL scales the sums of convolutions in groups in fixed point, to other bytes",
            );
        }
        if !g.channels_last {
            return refuse("a quantised convolution whose channels are not last");
        }
        let unfold = Unfold {
            batch: g.batch,
            channels: g.in_channels,
            axes: two_axes(&g.axes)?,
            zero: zero_point(node, at.zero_points[0])? as u8,
        };
        let order = match w.shape.len() {
            3 => vec![2, 1, 0],
            _ => vec![2, 3, 1, 0],
        };
        let [y, x] = unfold.axes;
        let rows = g.batch * y.output * x.output;
        let k = y.kernel * x.kernel * g.in_channels;
        let unfold = (!unfold.is_nothing()).then_some(unfold);
        Product::new(node, at, [rows, k, g.out_channels], order, unfold)
    }

    fn unfolded_bytes(&self) -> usize {
        match self.unfold {
            Some(_) => self.rows * self.k,
            None => 0,
        }
    }
}

/// The one zero point of a tensor.
pub fn zero_point(node: &NodeSpec, i: usize) -> Result<i32, Refusal> {
    if node.input(i).is_none() {
        return Ok(0);
    }
    let value = constant(node, i, "zero points")?.value.as_ref();
    let zeros = resolved(value.map_or(Ok(Vec::new()), |v| v.to_f64s()))?;
    match zeros[..] {
        [first, ref rest @ ..] if rest.iter().all(|z| *z == first) => Ok(first as i32),
        _ => refuse("ACL has one zero point for all of a tensor"),
    }
}

fn bytes(spec: &TensorSpec, shape: &[usize]) -> Result<Form, Refusal> {
    match spec.dtype {
        DType::U8 | DType::I8 => Form::of_elements(spec, shape),
        other => refuse(format!("a quantised tensor of {other}")),
    }
}

/// Unsigned data has signed weights around zero in ACL.
fn weight_form(
    data: &TensorSpec,
    weights: &TensorSpec,
    [k, n]: [usize; 2],
    zero: i32,
) -> Result<Form, Refusal> {
    match (data.dtype, weights.dtype) {
        // They would be packed anew in every run, and ACL then reads them as uint8.
        (DType::U8, DType::I8) if weights.value.is_none() => {
            refuse("ACL multiplies uint8 by computed int8 as if that were uint8, too")
        }
        (DType::U8, DType::I8) if zero == 0 => {
            let form = Form::of_type(ElementType::Qsymm8PerChannel, &[k, n])?;
            Ok(form.with_scales(vec![1.0; n], 0))
        }
        (data, weights) if data != weights => refuse(format!(
            "{data} data with weights of {weights} around {zero}"
        )),
        _ => Ok(bytes(weights, &[k, n])?.with_scales(vec![1.0], -zero)),
    }
}

/// The windows of a picture `[n, h, w, c]` as rows of a matrix.
struct Unfold {
    batch: usize,
    channels: usize,
    axes: [WindowAxis; 2],
    /// What the padding is filled with.
    zero: u8,
}

impl Unfold {
    /// Whether the rows are the picture itself.
    fn is_nothing(&self) -> bool {
        let plain = |a: &WindowAxis| a.kernel == 1 && a.stride == 1 && a.begin == 0 && a.end == 0;
        self.axes.iter().all(plain)
    }

    fn run(&self, picture: &[u8], rows: &mut [u8]) {
        let [vertical, horizontal] = self.axes;
        let mut pixels = rows.chunks_exact_mut(self.channels);
        for image in 0..self.batch {
            for (oy, ox) in pairs(vertical.output, horizontal.output) {
                for (ky, kx) in pairs(vertical.kernel, horizontal.kernel) {
                    let Some(to) = pixels.next() else { return };
                    match (place(&vertical, oy, ky), place(&horizontal, ox, kx)) {
                        (Some(y), Some(x)) => {
                            let pixel = (image * vertical.input + y) * horizontal.input + x;
                            let from = &picture[pixel * self.channels..];
                            to.copy_from_slice(&from[..self.channels]);
                        }
                        _ => to.fill(self.zero),
                    }
                }
            }
        }
    }
}

fn pairs(outer: usize, inner: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..outer).flat_map(move |o| (0..inner).map(move |i| (o, i)))
}

/// Where element `k` of window `o` is; `None` in the padding.
fn place(axis: &WindowAxis, o: usize, k: usize) -> Option<usize> {
    let at = (o * axis.stride + k * axis.dilation).checked_sub(axis.begin)?;
    (at < axis.input).then_some(at)
}

struct ProductKernel {
    product: Product,
    step: Step,
    finish: Finish,
}

impl Kernel for ProductKernel {
    fn run(&self, io: &mut Io) -> Result<()> {
        let p = &self.product;
        io.cpu().check()?;
        let scratch = io.scratch::<i32>(p.room());
        let (sums, rest) = scratch.split_at_mut(p.rows * p.n);
        let unfolded: &mut [u8] = &mut cast_slice_mut(rest)[..p.unfolded_bytes()];
        if let Some(unfold) = &p.unfold {
            unfold.run(io.input_bytes(p.data), unfolded);
        }
        let place = |i: usize| match p.unfold {
            Some(_) if i == p.data => unfolded.as_ptr(),
            _ => io.input_bytes(i).as_ptr(),
        };
        // SAFETY: matrices of the sizes that the product was made for, and sums of our own.
        unsafe { self.step.run(place, sums.as_mut_ptr().cast())? };
        if let Some(bias) = p.bias.and_then(|i| io.optional::<i32>(i)) {
            add_bias(io.cpu(), sums, bias)?;
        }
        self.finish.apply(io, sums)
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<i32>(self.product.room())
    }
}

impl Product {
    /// Sums, and behind them the unfolded data; more than can be counted are `usize::MAX`.
    fn room(&self) -> usize {
        let unfolded = self.unfolded_bytes().div_ceil(size_of::<i32>());
        self.rows.saturating_mul(self.n).saturating_add(unfolded)
    }
}

impl IntegerProduct for MatMulInteger {
    fn product(&self, node: &NodeSpec) -> Result<Product, Refusal> {
        Product::matrices(node, &INTEGER)
    }

    fn finish(&self, _: &NodeSpec) -> Result<Finish> {
        Ok(Finish::fixed(self.requantize.as_ref(), 1))
    }
}

impl IntegerProduct for MatMulIntegerToFloat {
    fn product(&self, node: &NodeSpec) -> Result<Product, Refusal> {
        Product::matrices(node, &TO_FLOAT)
    }

    fn finish(&self, node: &NodeSpec) -> Result<Finish> {
        let columns = input(node, 1).ok().and_then(|b| b.shape.last().copied());
        Finish::floats(node, [2, 3], 6, columns.unwrap_or(1))
    }
}

impl IntegerProduct for ConvInteger {
    fn product(&self, node: &NodeSpec) -> Result<Product, Refusal> {
        Product::convolution(&self.conv, node, &INTEGER)
    }

    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        let requantize = self.requantize.as_ref()?;
        let convolution = QuantizedConvolution::fixed(&self.conv, requantize, node);
        Some(convolution.and_then(|c| c.calls(node)))
    }

    fn finish(&self, _: &NodeSpec) -> Result<Finish> {
        Ok(Finish::fixed(self.requantize.as_ref(), 1))
    }
}

impl IntegerProduct for QLinearMatMul {
    fn product(&self, node: &NodeSpec) -> Result<Product, Refusal> {
        accepts_clamp(self.activation, node)?;
        Product::matrices(node, &QLINEAR)
    }

    fn finish(&self, node: &NodeSpec) -> Result<Finish> {
        Finish::real(node, 1, self.activation)
    }
}

impl IntegerProduct for QLinearConv {
    fn product(&self, node: &NodeSpec) -> Result<Product, Refusal> {
        accepts_clamp(self.conv.activation, node)?;
        Product::convolution(&self.conv, node, &QLINEAR)
    }

    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        let convolution = QuantizedConvolution::real(&self.conv, node);
        Some(convolution.and_then(|c| c.calls(node)))
    }

    fn finish(&self, node: &NodeSpec) -> Result<Finish> {
        Finish::real(node, 1, self.conv.activation)
    }
}
