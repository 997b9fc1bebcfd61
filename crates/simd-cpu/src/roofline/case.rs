//! A node that is measured, with what it computes on.

use std::sync::Arc;

use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::error::shape_error;
use kilim_core::ops::{
    Activation, Conv, InputFact, MatMul, MatMulInteger, MatMulNBits, Padding, QLinearConv,
};
use kilim_core::tensor::Element;
use kilim_core::{InferContext, Operator, Result, Tensor};
use serde::Serialize;

use super::shapes::{Layer, Shape};
use crate::isa::Isa;

/// What multiplies and adds in the SIMD kernels for a node: the loop that its peak is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arithmetic {
    /// Multiply-adds of `float32`.
    Float32,
    /// Pairs of products of `int16`, added to `int32`.
    Int16,
    /// Four products of bytes, one of them of four bits, added to `int32`.
    Int8,
}

impl Arithmetic {
    /// What multiplies bytes whose weights take all bits.
    fn of_bytes() -> Arithmetic {
        match Isa::best().fours() {
            Some(_) => Arithmetic::Int8,
            None => Arithmetic::Int16,
        }
    }
}

/// A node with what it computes on.
pub(super) struct Case {
    pub op: Arc<dyn Operator>,
    /// Constants have their values.
    pub inputs: Vec<Option<TensorSpec>>,
    pub values: Vec<Option<Tensor>>,
    pub outputs: [TensorSpec; 1],
    pub arithmetic: Arithmetic,
}

impl Case {
    fn new(
        op: impl Operator,
        data: &[Tensor],
        constants: &[Tensor],
        arithmetic: Arithmetic,
    ) -> Result<Case> {
        let given = data.iter().map(|x| TensorSpec::new(x.dtype(), x.shape()));
        let known = constants.iter().map(TensorSpec::of);
        let inputs: Vec<_> = given.chain(known).map(Some).collect();
        let facts: Vec<_> = (inputs.iter())
            .map(|spec| spec.as_ref().map(InputFact::from))
            .collect();
        let outputs = op.infer(&InferContext::new(&facts, 1))?;
        let output = outputs.first().and_then(|fact| {
            let shape = fact.concrete()?;
            Some(TensorSpec::new(fact.dtype?, &shape))
        });
        let output = output.ok_or_else(|| shape_error("an output that is not inferred"))?;
        let values = data.iter().chain(constants).cloned().map(Some);
        Ok(Case {
            op: Arc::new(op),
            values: values.collect(),
            inputs,
            outputs: [output],
            arithmetic,
        })
    }

    pub fn node(&self) -> NodeSpec<'_> {
        NodeSpec {
            name: "measured",
            op: &*self.op,
            inputs: &self.inputs,
            outputs: &self.outputs,
        }
    }

    /// Bytes of all inputs and outputs, each once.
    pub fn bytes(&self) -> usize {
        let tensors = self.inputs.iter().flatten().chain(&self.outputs);
        tensors.map(TensorSpec::bytes).sum()
    }
}

impl Shape {
    /// The node.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn case(self) -> Result<Case> {
        match self {
            Shape::Product([m, k, n]) => Case::new(
                MatMul::default(),
                &[reals(&[m, k])?],
                &[reals(&[k, n])?],
                Arithmetic::Float32,
            ),
            Shape::Computed([m, k, n]) => Case::new(
                MatMul::default(),
                &[reals(&[m, k])?, reals(&[k, n])?],
                &[],
                Arithmetic::Float32,
            ),
            Shape::IntegerProduct([m, k, n]) => Case::new(
                MatMulInteger::default(),
                &[bytes(&[m, k])?],
                &[signed(&[k, n])?, scalar(128u8)?, scalar(0i8)?],
                Arithmetic::of_bytes(),
            ),
            Shape::Packed { sizes, int8 } => packed(sizes, int8),
            Shape::Convolution(layer) => Case::new(
                layer.operator(Activation::Relu),
                &[reals(&layer.data())?],
                &[reals(&layer.weights())?, reals(&[layer.outputs])?],
                Arithmetic::Float32,
            ),
            Shape::IntegerConvolution(layer) => integer_convolution(layer),
        }
    }
}

impl Layer {
    fn operator(&self, activation: Activation) -> Conv {
        Conv {
            strides: vec![self.stride; 2],
            dilations: vec![1; 2],
            padding: Padding::SameUpper,
            groups: self.groups,
            channels_last: true,
            activation,
        }
    }

    fn weights(&self) -> [usize; 4] {
        let Layer { kernel, .. } = *self;
        [self.outputs, self.channels / self.groups, kernel, kernel]
    }

    fn data(&self) -> [usize; 4] {
        [1, self.size, self.size, self.channels]
    }
}

fn integer_convolution(layer: Layer) -> Result<Case> {
    // In the order of ONNX: behind the data are its scale and zero point, the weights with theirs, and the output's.
    Case::new(
        QLinearConv {
            conv: layer.operator(Activation::None),
        },
        &[bytes(&layer.data())?],
        &[
            scalar(0.02f32)?,
            scalar(128u8)?,
            signed(&layer.weights())?,
            scalar(0.01f32)?,
            scalar(0i8)?,
            scalar(0.5f32)?,
            scalar(128u8)?,
        ],
        Arithmetic::of_bytes(),
    )
}

/// Columns that share a scale.
const BLOCK: usize = 32;

fn packed([m, k, n]: [usize; 3], int8: bool) -> Result<Case> {
    let op = MatMulNBits {
        k,
        n,
        bits: 4,
        block: BLOCK,
        int8,
        activation: Activation::None,
    };
    let [blocks, size, _] = op.row()?;
    let weights = bytes(&[n, blocks, size])?;
    let scales = reals(&[n, blocks])?;
    let arithmetic = match int8 {
        true => Arithmetic::Int8,
        false => Arithmetic::Float32,
    };
    Case::new(op, &[reals(&[m, k])?], &[weights, scales], arithmetic)
}

fn scalar<T: Element>(x: T) -> Result<Tensor> {
    Tensor::from_slice(&[], &[x])
}

/// A tensor of what `of` makes of numbers that look random and are the same every time.
fn drawn<T: Element>(shape: &[usize], of: impl Fn(u32) -> T) -> Result<Tensor> {
    let mut state = 1u32;
    // The generator of Numerical Recipes, whose upper bits are good.
    let next = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        of(state >> 8)
    };
    let elements: Vec<T> = std::iter::repeat_with(next)
        .take(shape.iter().product())
        .collect();
    Tensor::from_slice(shape, &elements)
}

/// Numbers in -1..1.
fn reals(shape: &[usize]) -> Result<Tensor> {
    drawn(shape, |x| x as f32 / (1 << 23) as f32 - 1.0)
}

fn bytes(shape: &[usize]) -> Result<Tensor> {
    drawn(shape, |x| (x >> 16) as u8)
}

fn signed(shape: &[usize]) -> Result<Tensor> {
    drawn(shape, |x| (x >> 16) as u8 as i8)
}

#[cfg(test)]
mod tests {
    use super::super::shapes::layer;
    use super::*;
    use Shape::{Computed, Convolution, IntegerConvolution, IntegerProduct, Packed, Product};

    fn flops(shape: Shape) -> f64 {
        shape.case().expect("there is memory").node().cost().flops
    }

    /// A multiplication and an addition for each weight and output that meet.
    #[test]
    fn operations_are_counted() {
        assert_eq!(flops(Product([3, 5, 7])), 210.0);
        assert_eq!(flops(Computed([3, 5, 7])), 210.0);
        assert_eq!(flops(IntegerProduct([3, 5, 7])), 210.0);
        let sizes = [3, 32, 7];
        assert_eq!(flops(Packed { sizes, int8: true }), 1344.0);
        // 4 by 4 outputs of 6 channels, each of 3 by 3 taps of 8 channels.
        let dense = layer(8, 8, 6, 1, 3, 2);
        assert_eq!(flops(Convolution(dense)), 2.0 * 96.0 * 72.0);
        assert_eq!(flops(IntegerConvolution(dense)), 2.0 * 96.0 * 72.0);
        // A depthwise one has one channel for each output.
        let depthwise = layer(8, 8, 8, 8, 3, 1);
        assert_eq!(flops(Convolution(depthwise)), 2.0 * 512.0 * 9.0);
        let grouped = layer(8, 8, 4, 2, 1, 1);
        assert_eq!(flops(Convolution(grouped)), 2.0 * 256.0 * 4.0);
    }

    #[test]
    fn bytes_are_counted_as_they_are_stored() {
        let case = |shape: Shape| shape.case().expect("there is memory").bytes();
        assert_eq!(case(Product([3, 5, 7])), 4 * (15 + 35 + 21));
        // Data and weights of a byte, two zero points, sums of four bytes.
        assert_eq!(case(IntegerProduct([3, 5, 7])), 15 + 35 + 2 + 4 * 21);
        let sizes = [1, 64, 8];
        // 64 numbers of a row, 8 rows of two blocks of 16 bytes and a scale, 8 results.
        let packed = Packed { sizes, int8: true };
        assert_eq!(case(packed), 4 * 64 + 8 * 2 * (16 + 4) + 4 * 8);
    }
}
