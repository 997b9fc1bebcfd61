//! Quantised graphs as exporters write them: what the passes make of them, against the same graph as it
//! stands.

mod blocks;
mod movement;
mod pointwise;
mod products;
mod real;

use std::ops::{Deref, DerefMut};

use kilim::core::ops::{
    Activation, Clip, Conv, DequantizeLinear, Padding, QuantizeLinear, Unary, UnaryKind,
};
use kilim::{DType, Fact, Graph, Tensor};

pub use real::dynamic_product;

use super::{Random, V, names, optimised, run};

impl Random {
    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    fn bytes(&mut self, dtype: DType, shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        let bytes: Vec<u8> = (0..n).map(|_| (self.next() >> 20) as u8).collect();
        Tensor::from_slice(shape, &bytes)
            .and_then(|t| t.reinterpreted(dtype))
            .unwrap()
    }

    fn of_bytes(&mut self) -> DType {
        [DType::U8, DType::I8][self.below(2)]
    }
}

/// A quantised graph in the making.
struct Builder {
    graph: super::Builder,
    /// Scales are powers of two, so that no sum of real numbers is rounded.
    exact: bool,
}

impl Deref for Builder {
    type Target = super::Builder;

    fn deref(&self) -> &super::Builder {
        &self.graph
    }
}

impl DerefMut for Builder {
    fn deref_mut(&mut self) -> &mut super::Builder {
        &mut self.graph
    }
}

/// Scale and zero point.
#[derive(Clone, Copy)]
struct Scale(V, V);

impl Builder {
    fn new(seed: u64, exact: bool) -> Builder {
        let graph = super::Builder::new(seed);
        Builder { graph, exact }
    }

    fn scale_about(&mut self, size: f32) -> f32 {
        let by = 1.0 + self.random.below(1000) as f32 / 1000.0;
        match self.exact {
            true => size.log2().floor().exp2(),
            false => size * by,
        }
    }

    fn scale(&mut self, dtype: DType, size: f32) -> Scale {
        let scale = Tensor::scalar(self.scale_about(size)).unwrap();
        let zero = self.random.bytes(dtype, &[]);
        Scale(self.constant(scale), self.constant(zero))
    }

    fn quantise(&mut self, x: V, dtype: DType, size: f32) -> (V, Scale) {
        let s = self.scale(dtype, size);
        (self.quantise_as(x, s), s)
    }

    fn quantise_as(&mut self, x: V, Scale(s, z): Scale) -> V {
        let op = QuantizeLinear {
            axis: 1,
            block: 0,
            output: None,
        };
        self.op(op, &[x, s, z])
    }

    fn real_along(&mut self, x: V, Scale(s, z): Scale, axis: i64) -> V {
        self.op(DequantizeLinear { axis, block: 0 }, &[x, s, z])
    }

    fn real(&mut self, x: V, scale: Scale) -> V {
        self.real_along(x, scale, 1)
    }

    /// An input of bytes, as real numbers.
    fn input(&mut self, shape: &[usize], size: f32) -> (V, Scale) {
        let dtype = self.random.of_bytes();
        let name = format!("x{}", self.g.inputs.len());
        let x = self.g.add_input(name, Fact::fixed(dtype, shape));
        let scale = self.scale(dtype, size);
        (self.real(x, scale), scale)
    }

    /// Weights as real numbers, with the scales that they have.
    fn weights(&mut self, shape: &[usize], axis: usize, size: f32) -> (V, Vec<f32>) {
        let dtype = self.random.of_bytes();
        let count = if self.random.flag() { shape[axis] } else { 1 };
        let scales: Vec<f32> = (0..count).map(|_| self.scale_about(size)).collect();
        let dims: &[usize] = if count == 1 { &[] } else { &[count] };
        let s = self.constant(Tensor::from_slice(dims, &scales).unwrap());
        let z = self.random.bytes(dtype, dims);
        let z = self.constant(z);
        let w = self.random.bytes(dtype, shape);
        let w = self.constant(w);
        (self.real_along(w, Scale(s, z), axis as i64), scales)
    }

    /// A bias in steps of the product of two scales.
    fn bias(&mut self, n: usize, data: Scale, weights: &[f32]) -> V {
        let data = self.g.value(data.0).constant.as_ref().unwrap();
        let data = data.as_slice::<f32>().unwrap()[0];
        let scales: Vec<f32> = weights.iter().map(|w| w * data).collect();
        let dims: &[usize] = if scales.len() == 1 { &[] } else { &[n] };
        let numbers: Vec<i32> = (0..n)
            .map(|_| self.random.below(20_000) as i32 - 10_000)
            .collect();
        let zeros = Tensor::zeros(DType::I32, dims).unwrap();
        let b = self.constant(Tensor::from_slice(&[n], &numbers).unwrap());
        let s = self.constant(Tensor::from_slice(dims, &scales).unwrap());
        let z = self.constant(zeros);
        self.real_along(b, Scale(s, z), 0)
    }

    /// Nothing, Relu, or a clip.
    fn clamp(&mut self, x: V, most: f32) -> V {
        match self.random.below(4) {
            0 => self.op(Unary(UnaryKind::Relu), &[x]),
            1 => {
                let (low, high) = (self.scalar(-most / 3.0), self.scalar(most / 2.0));
                self.op(Clip, &[x, low, high])
            }
            _ => x,
        }
    }
}

/// The names of the operators that are left after all passes.
fn remaining(graph: &Graph) -> Vec<String> {
    let graph = optimised(graph);
    names(&graph).into_iter().map(str::to_string).collect()
}

/// The steps by which results differ between the graph as it stands and optimised, at most, and how
/// many of them do.
fn difference(b: &mut Builder, outputs: &[V]) -> (f64, usize) {
    b.g.outputs = outputs.to_vec();
    let ports = b.g.inputs.clone();
    let mut inputs = Vec::new();
    for v in ports {
        let value = b.g.value(v);
        let (name, dtype) = (value.name.clone(), value.fact.dtype.unwrap());
        let shape = value.fact.concrete().unwrap();
        let tensor = match dtype {
            DType::F32 => {
                let unit = b.random.floats(&shape);
                let wide = unit.as_slice::<f32>().unwrap().iter().map(|x| 9.0 * x);
                Tensor::from_slice(&shape, &wide.collect::<Vec<_>>()).unwrap()
            }
            _ => b.random.bytes(dtype, &shape),
        };
        inputs.push((name, tensor));
    }
    let inputs: Vec<(&str, Tensor)> = inputs.iter().map(|(n, t)| (&n[..], t.clone())).collect();
    let plain = run(&b.g, false, &inputs);
    let fast = run(&b.g, true, &inputs);
    let (mut most, mut count) = (0.0f64, 0);
    for ((_, a), (_, b)) in plain.iter().zip(&fast) {
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()));
        for (x, y) in a.to_f64s().unwrap().iter().zip(b.to_f64s().unwrap()) {
            most = most.max((x - y).abs());
            count += usize::from(*x != y);
        }
    }
    (most, count)
}

fn conv(stride: usize, groups: usize, pad: usize) -> Conv {
    Conv {
        strides: vec![stride; 2],
        dilations: vec![1; 2],
        padding: Padding::Explicit(vec![pad; 4]),
        groups,
        channels_last: false,
        activation: Activation::None,
    }
}
