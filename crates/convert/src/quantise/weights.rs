//! Weights as the nodes that read them have them.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Conv, Gather, Gemm, MatMul};
use kilim_core::{DType, Tensor};
use kilim_formats::build::GraphBuilder;

use super::FEWEST;
use crate::rebuild::Given;

/// What a node does with its weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The right factor of a product, `[k, n]`, or `[n, k]` where it is transposed; with a bias as input 2 or without.
    Product { transposed: bool },
    /// A convolution with filters `[channels, ..]`.
    Convolution,
    /// A table `[rows, columns]` whose rows are gathered.
    Table,
}

/// The weights of a node: which input they are, and what it does with them. `None` where they are no `float32` constants, or few.
pub fn weights(b: &GraphBuilder, given: &Given) -> Option<(usize, Use, Tensor)> {
    let op = &given.node.op;
    let (i, role) = if op.is::<MatMul>() {
        (1, Use::Product { transposed: false })
    } else if let Some(gemm) = op.downcast_ref::<Gemm>() {
        if gemm.transpose_a || gemm.alpha != 1.0 || gemm.beta != 1.0 {
            return None;
        }
        let transposed = gemm.transpose_b;
        (1, Use::Product { transposed })
    } else if op.is::<Conv>() {
        (1, Use::Convolution)
    } else {
        let gather = op.downcast_ref::<Gather>()?;
        if gather.axis != 0 {
            return None;
        }
        (0, Use::Table)
    };
    let tensor = b.constant(given.input(i)?)?;
    let rank = tensor.rank();
    let fits = match role {
        Use::Convolution => rank > 2,
        _ => rank == 2,
    };
    let usable = fits && tensor.dtype() == DType::F32 && tensor.len() >= FEWEST;
    let computes = role == Use::Table || b.dtype(given.input(0)?) == Some(DType::F32);
    (usable && computes).then_some((i, role, tensor))
}

/// Weights as `int8` around zero, with a scale for each place along `axis`.
pub struct Whole {
    pub numbers: Vec<i8>,
    pub scales: Vec<f32>,
}

/// The largest number: the scale is the largest magnitude over this, as onnxruntime's quantiser has it.
const LARGEST: f32 = 127.0;

impl Whole {
    /// # Errors
    /// What reading the weights says.
    pub fn new(weights: &Tensor, axis: usize) -> Result<Whole> {
        let weights = weights.unread();
        let reals = weights.as_slice::<f32>()?;
        let places = weights.shape()[axis];
        let inner: usize = weights.shape()[axis + 1..].iter().product();
        let place = |i: usize| i / inner.max(1) % places.max(1);
        let mut scales = vec![0f32; places];
        for (i, x) in reals.iter().enumerate() {
            let scale = &mut scales[place(i)];
            *scale = scale.max(x.abs());
        }
        for scale in &mut scales {
            *scale = if *scale > 0.0 { *scale / LARGEST } else { 1.0 };
        }
        let numbers = reals.iter().enumerate();
        let numbers = numbers.map(|(i, x)| (x / scales[place(i)]).round_ties_even() as i8);
        Ok(Whole {
            numbers: numbers.collect(),
            scales,
        })
    }
}

/// What follows a product: its bias, where the node has one.
pub fn with_bias(b: &mut GraphBuilder, given: &Given, y: ValueId) -> Result<ValueId> {
    match given.input(2) {
        Some(bias) => b.add(y, bias),
        None => Ok(y),
    }
}
