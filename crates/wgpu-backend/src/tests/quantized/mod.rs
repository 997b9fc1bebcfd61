//! Quantised operators: the bytes of the CPU backend.

mod linear;
mod pointwise;
mod products;

use kilim_core::fixed::Factor;
use kilim_core::ops::Requantize;
use kilim_core::{DType, Tensor};

use super::harness::*;

/// Any bytes, the same for the same seed.
fn bytes(dtype: DType, shape: &[usize], seed: u32) -> Tensor {
    let noise = random(shape, seed).to_f64s().unwrap();
    let bytes: Vec<u8> = noise.iter().map(|v| ((v + 1.0) * 127.99) as u8).collect();
    let size = dtype.size();
    let bytes: Vec<u8> = bytes.iter().flat_map(|&b| vec![b; size]).collect();
    Tensor::from_raw(dtype, shape, &bytes).unwrap()
}

/// Scales that are no powers of two.
fn scales(count: usize, around: f32, seed: u32) -> Tensor {
    let noise = random(&[count], seed).to_f64s().unwrap();
    let scales: Vec<f32> = noise
        .iter()
        .map(|&v| around * (1.5 + v as f32 / 1.3))
        .collect();
    f32s(&[count], &scales)
}

fn one(tensor: &Tensor) -> Tensor {
    tensor.reshaped(&[]).unwrap()
}

/// How the parameters of an operator are known.
const KNOWN: [fn(Tensor) -> Given; 2] = [Given::Constant, Given::Fed];

fn requantize(factors: usize, output: DType) -> Requantize {
    let reals = scales(factors, 0.0007, 17).to_f64s().unwrap();
    Requantize {
        factors: reals.iter().map(|&r| Factor::new(r).unwrap()).collect(),
        zero_point: -4,
        range: if output == DType::U8 {
            [0, 255]
        } else {
            [-128, 120]
        },
        output,
    }
}
